#include "models/ltx2/video_vae/decode_memory.h"

#include "kernels/block_list.h"
#include "models/ltx2/video_vae/conv_memory.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace sluice::ltx2 {
namespace {

enum class Kind { conv_in, residual, upsample, conv_out };

struct StageShape {
  Kind kind;
  ConvSize size;  // of its convolutions, but for frames
  std::int64_t stride_t = 1;
  bool skips = false;  // an upsampler with a residual

  std::int64_t area() const { return size.batch * size.height * size.width; }
  std::int64_t in_frame() const { return size.in * area(); }  // values
  std::int64_t out_frame() const { return size.out * area(); }
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

// Blocks as the memory pool of a run places them: what lies between blocks that stay is touched memory too.
class Arena {
 public:
  struct Block {
    Bytes offset = 0;
    bool taken = false;  // not for no bytes
  };

  Block take(std::int64_t bytes) {
    if (bytes <= 0) return {};
    const std::optional<Bytes> offset = blocks_.take(static_cast<Bytes>(bytes));
    peak_ = std::max(peak_, blocks_.live());
    return {offset.value(), true};
  }
  void give_back(Block& block) {
    if (block.taken) blocks_.give_back(block.offset);
    block = {};
  }
  void brief(std::int64_t bytes) {
    Block block = take(bytes);
    give_back(block);
  }

  std::int64_t peak() const { return static_cast<std::int64_t>(peak_); }
  std::int64_t extent() const { return static_cast<std::int64_t>(blocks_.extent()); }

 private:
  kernels::BlockList blocks_{Bytes{1} << 60};
  Bytes peak_ = 0;
};

struct Frames {
  std::int64_t count = 0;
  Arena::Block block;
};

// Goes through a clip as VideoDecodeStream does, with blocks of bytes for tensors, taken and given back in
// the same order.
class Rehearsal {
 public:
  Rehearsal(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes, PieceLimit limit)
      : causal_(config.decoder_causal), compute_(dtypes.compute), limit_(limit) {
    std::int64_t rate = 1;
    for (const StageShape& shape : stage_shapes(config, clip)) {
      stages_.push_back({shape, rate, {}, {}, shape.stride_t - 1});
      rate *= shape.stride_t;
    }
  }

  const Arena& run(std::int64_t frames) {
    feed(0, {frames, {}}, Last::yes);
    return arena_;
  }

 private:
  struct Conv {
    bool running = false;  // has a history
    Arena::Block history;
  };
  struct Stage {
    StageShape shape;
    std::int64_t rate;  // of its input
    Conv conv1, conv2;
    std::int64_t to_drop;
  };
  enum class Old { free, keep };  // the history before, which a skip path may hold on to

  void feed(std::size_t index, Frames x, Last last);
  Frames push(Stage& stage, std::int64_t n, Last last);
  Frames push_residual(Stage& stage, std::int64_t n, Last last);
  Frames convolve(const StageShape& shape, Conv& conv, Frames x, Last last, Old old);
  void work_in(std::int64_t bytes);
  std::int64_t bytes(std::int64_t values) const { return values * element_bytes(compute_); }

  bool causal_;
  at::ScalarType compute_;
  PieceLimit limit_;
  std::vector<Stage> stages_;
  Arena arena_;
  Arena::Block scratch_;  // what convolutions work in only grows
  std::int64_t scratch_bytes_ = 0;
};

void Rehearsal::work_in(std::int64_t bytes) {
  if (bytes <= scratch_bytes_) return;
  arena_.give_back(scratch_);
  scratch_ = arena_.take(bytes);
  scratch_bytes_ = bytes;
}

// TimeConv::push.  `x` is given back before it convolves, if it has a block.
Frames Rehearsal::convolve(const StageShape& shape, Conv& conv, Frames x, Last last, Old old) {
  if (x.count == 0 && (last == Last::no || !conv.running)) return {};
  const std::int64_t copies = causal_ ? kConvHistory : kConvTaps / 2;
  ConvSize size = shape.size;
  size.frames =
      x.count + (conv.running ? kConvHistory : copies) + (last == Last::yes && !causal_ ? kConvTaps / 2 : 0);
  // Latents lie channel by channel.
  Arena::Block reordered = arena_.take(shape.kind == Kind::conv_in ? bytes(x.count * shape.in_frame()) : 0);
  work_in(conv_memory(size, compute_).all());
  Arena::Block kept = arena_.take(last == Last::no ? bytes(kConvHistory * shape.in_frame()) : 0);
  if (old == Old::free) arena_.give_back(conv.history);
  conv.history = kept;
  conv.running = last == Last::no;
  arena_.give_back(reordered);
  arena_.give_back(x.block);
  return {size.frames_out(), arena_.take(bytes(size.frames_out() * shape.out_frame()))};
}

Frames Rehearsal::push_residual(Stage& stage, std::int64_t n, Last last) {
  Arena::Block old = stage.conv1.history;  // the skip path's, until the end
  Frames h = convolve(stage.shape, stage.conv1, {n, {}}, last, Old::keep);
  h = convolve(stage.shape, stage.conv2, h, last, Old::free);
  arena_.give_back(old);
  return h;
}

// Stage::push.
Frames Rehearsal::push(Stage& stage, std::int64_t n, Last last) {
  const StageShape& shape = stage.shape;
  if (shape.kind == Kind::residual) return push_residual(stage, n, last);
  Arena::Block old = shape.skips ? stage.conv1.history : Arena::Block();
  Frames h = convolve(shape, stage.conv1, {n, {}}, last, shape.skips ? Old::keep : Old::free);
  if (shape.kind != Kind::upsample) return h;
  Arena::Block shuffled = arena_.take(bytes(h.count * shape.out_frame()));
  arena_.give_back(h.block);
  arena_.give_back(old);
  const std::int64_t dropped = std::min(stage.to_drop, h.count * shape.stride_t);
  stage.to_drop -= dropped;
  return {h.count * shape.stride_t - dropped, shuffled};
}

// VideoDecodeStream::feed: `x` is given back with the last piece.
void Rehearsal::feed(std::size_t index, Frames x, Last last) {
  if (index == stages_.size()) {
    arena_.brief(bytes(x.count * stages_.back().shape.out_frame()));  // unpatchified
    arena_.give_back(x.block);
    return;
  }
  const StageShape& shape = stages_[index].shape;
  const std::int64_t frame = std::max(shape.in_frame(), shape.out_frame());
  const std::int64_t step = limit_.at(bytes(frame), stages_[index].rate);
  for (std::int64_t start = 0; start == 0 || start < x.count; start += step) {
    const std::int64_t end = std::min(x.count, start + step);
    const Last ends = end == x.count ? last : Last::no;
    Frames out = push(stages_[index], end - start, ends);
    if (end == x.count) arena_.give_back(x.block);
    if (out.count || ends == Last::yes) {
      feed(index + 1, out, ends);
    } else {
      arena_.give_back(out.block);
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
