#include "models/ltx2/video_vae/decode_memory.h"

#include "models/ltx2/video_vae/stream_rehearsal.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sluice::ltx2 {
namespace {

enum class Kind { conv_in, residual, upsample, conv_out };

struct StageShape {
  Kind kind;
  ConvSize size;  // of its convolutions, but for frames
  std::int64_t stride_t = 1;
  bool skips = false;  // an upsampler with a residual

  std::int64_t in_frame() const { return size.in * size.positions(); }  // values
  std::int64_t out_frame() const { return size.out * size.positions(); }
};

std::int64_t element_bytes(at::ScalarType dtype) {
  return static_cast<std::int64_t>(c10::elementSize(dtype));
}

std::vector<StageShape> stage_shapes(const VideoVaeConfig& config, const LatentClip& clip) {
  std::int64_t height = clip.height, width = clip.width;
  std::vector<StageShape> stages;
  auto add = [&](Kind kind, std::int64_t in, std::int64_t out, std::int64_t stride_t = 1) {
    stages.push_back({kind, {clip.batch, 0, height, width, in, out, config.decoder_padding}, stride_t});
  };
  add(Kind::conv_in, config.latent_channels, config.mid_channels);
  for (std::int64_t i = 0; i < config.mid_layers; i++)
    add(Kind::residual, config.mid_channels, config.mid_channels);
  for (const UpBlockConfig& block : config.up_blocks) {
    add(Kind::upsample, block.in_channels, block.channels * block.shuffle(), block.stride_t);
    stages.back().skips = block.residual;
    height *= block.stride_h;
    width *= block.stride_w;
    for (std::int64_t i = 0; i < block.layers; i++) add(Kind::residual, block.channels, block.channels);
  }
  add(Kind::conv_out, config.last_channels(), config.out_channels * config.patch_size * config.patch_size);
  return stages;
}

// Goes through a clip as VideoDecodeStream does.
class Rehearsal {
 public:
  Rehearsal(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes, PieceLimit limit)
      : stream_(config.decoder_causal, dtypes.compute), limit_(limit) {
    std::int64_t rate = 1;
    for (const StageShape& shape : stage_shapes(config, clip)) {
      stages_.push_back({shape, rate, {}, {}, shape.stride_t - 1});
      rate *= shape.stride_t;
    }
  }

  const Arena& run(std::int64_t frames) {
    feed(0, {frames, {}}, Last::yes);
    return stream_.arena();
  }

 private:
  using Frames = RehearsedFrames;
  using Old = StreamRehearsal::Old;
  using Arrival = StreamRehearsal::Arrival;

  struct Stage {
    StageShape shape;
    std::int64_t rate;  // of its input
    StreamRehearsal::Conv conv1, conv2;
    std::int64_t to_drop;
  };

  void feed(std::size_t index, Frames x, Last last);
  Frames push(Stage& stage, std::int64_t n, Last last);

  StreamRehearsal stream_;
  PieceLimit limit_;
  std::vector<Stage> stages_;
};

// Stage::push.  Latents lie channel by channel.
RehearsedFrames Rehearsal::push(Stage& stage, std::int64_t n, Last last) {
  const StageShape& shape = stage.shape;
  if (shape.kind == Kind::residual) return stream_.residual(shape.size, stage.conv1, stage.conv2, n, last);
  Arena::Block old = shape.skips ? stage.conv1.history : Arena::Block();
  Frames h =
      stream_.convolve(shape.size, stage.conv1, {n, {}}, last,
                       {.old = shape.skips ? Old::keep : Old::free,
                        .arrival = shape.kind == Kind::conv_in ? Arrival::by_copy : Arrival::in_place});
  if (shape.kind != Kind::upsample) return h;
  Arena& arena = stream_.arena();
  Arena::Block shuffled = arena.take(stream_.bytes(h.count * shape.out_frame()));
  arena.give_back(h.block);
  arena.give_back(old);
  const std::int64_t dropped = std::min(stage.to_drop, h.count * shape.stride_t);
  stage.to_drop -= dropped;
  return {h.count * shape.stride_t - dropped, shuffled};
}

// VideoDecodeStream::feed: `x` is given back with the last piece.
void Rehearsal::feed(std::size_t index, Frames x, Last last) {
  Arena& arena = stream_.arena();
  if (index == stages_.size()) {
    arena.brief(stream_.bytes(x.count * stages_.back().shape.out_frame()));  // unpatchified
    arena.give_back(x.block);
    return;
  }
  const StageShape& shape = stages_[index].shape;
  const std::int64_t frame = std::max(shape.in_frame(), shape.out_frame());
  const std::int64_t step = limit_.at(stream_.bytes(frame), stages_[index].rate);
  for (std::int64_t start = 0; start == 0 || start < x.count; start += step) {
    const std::int64_t end = std::min(x.count, start + step);
    const Last ends = end == x.count ? last : Last::no;
    Frames out = push(stages_[index], end - start, ends);
    if (end == x.count) arena.give_back(x.block);
    if (out.count || ends == Last::yes) {
      feed(index + 1, out, ends);
    } else {
      arena.give_back(out.block);
    }
  }
}

// A clip in pieces needs no more than one that is a few times as long as the layers reach.
std::int64_t frames_that_count(const LatentClip& clip, PieceLimit limit) {
  constexpr std::int64_t kLong = 32;
  return limit.latent_frames < kLong ? std::min(clip.frames, kLong) : clip.frames;
}

}  // namespace

std::int64_t video_decode_memory(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                                 PieceLimit limit) {
  return Rehearsal(config, clip, dtypes, limit).run(frames_that_count(clip, limit)).extent();
}

std::int64_t video_decode_tensors(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                                  PieceLimit limit) {
  return Rehearsal(config, clip, dtypes, limit).run(frames_that_count(clip, limit)).peak();
}

std::int64_t video_decode_state(const VideoVaeConfig& config, const LatentClip& clip,
                                at::ScalarType compute) {
  std::int64_t elements = 0;
  for (const StageShape& stage : stage_shapes(config, clip))
    elements += (stage.kind == Kind::residual ? 2 : 1) * kConvHistory * stage.in_frame();
  return elements * element_bytes(compute);
}

std::vector<PieceLimit> piece_limits() {
  constexpr std::int64_t kLeast = std::int64_t{256} << 10;
  std::vector<PieceLimit> limits;
  for (PieceLimit limit; limit.bytes >= kLeast; limit.bytes /= 2) limits.push_back(limit);
  limits.push_back({.bytes = 0});  // single frames
  return limits;
}

PieceLimit fit_pieces(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                      std::int64_t budget) {
  std::int64_t least = 0;
  for (const PieceLimit& limit : piece_limits()) {
    least = video_decode_memory(config, clip, dtypes, limit);
    if (least <= budget) return limit;
  }
  throw Error(ErrorKind::does_not_fit,
              fmt::format("decoding {}x{} latents takes {} even frame by frame, {} are left", clip.width,
                          clip.height, format_bytes(static_cast<Bytes>(least)),
                          format_bytes(static_cast<Bytes>(std::max<std::int64_t>(budget, 0)))),
              "use a smaller picture, --compute-dtype bf16, or a larger --memory-limit");
}

}  // namespace sluice::ltx2
