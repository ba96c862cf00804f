#include "models/ltx2/video_vae/decode_memory.h"

#include "kernels/block_list.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kHistory = 2;  // frames a convolution remembers
constexpr std::int64_t kTaps = 27;    // of a 3x3x3 kernel
constexpr std::int64_t kF32 = 4;

enum class Kind { conv_in, residual, upsample, conv_out };

struct StageShape {
  Kind kind;
  std::int64_t in = 0;    // channels of the input
  std::int64_t out = 0;   // channels of the convolution's output
  std::int64_t area = 0;  // positions of a frame, of the whole batch
  double border = 1;      // by how much reflected borders enlarge a frame
  std::int64_t stride_t = 1;
  bool skips = false;  // an upsampler with a residual
};

std::int64_t element_bytes(at::ScalarType dtype) {
  return static_cast<std::int64_t>(c10::elementSize(dtype));
}

double border_of(const VideoVaeConfig& config, std::int64_t height, std::int64_t width) {
  if (config.decoder_padding == SpatialPadding::zeros) return 1;
  return static_cast<double>((height + 2) * (width + 2)) / static_cast<double>(height * width);
}

std::vector<StageShape> stage_shapes(const VideoVaeConfig& config, const LatentClip& clip) {
  std::int64_t height = clip.height, width = clip.width;
  std::vector<StageShape> stages;
  auto add = [&](Kind kind, std::int64_t in, std::int64_t out, std::int64_t stride_t = 1) {
    stages.push_back(
        {kind, in, out, clip.batch * height * width, border_of(config, height, width), stride_t});
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
      : causal_(config.decoder_causal),
        element_(element_bytes(dtypes.compute)),
        widens_(dtypes.compute != dtypes.weights),
        limit_(limit) {
    std::int64_t rate = 1, widened = 0;
    for (const StageShape& shape : stage_shapes(config, clip)) {
      stages_.push_back({shape, rate, {}, {}, shape.stride_t - 1});
      rate *= shape.stride_t;
      widened = std::max(widened, weight_copy(shape));
    }
    if (widens_) arena_.take(widened);  // the block of widened weights only grows
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

  // Of those output channels that are convolved at once.
  std::int64_t weight_copy(const StageShape& shape) const {
    return std::min(shape.in * shape.out * kTaps * element_, nn::kConvWeightTile);
  }

  void feed(std::size_t index, Frames x, Last last);
  Frames push(Stage& stage, std::int64_t n, Last last);
  Frames push_residual(Stage& stage, std::int64_t n, Last last);
  Frames convolve(const StageShape& shape, Conv& conv, Frames x, Last last, bool normed, Old old);
  Arena::Block convolved(const StageShape& shape, std::int64_t frames);

  bool causal_;
  std::int64_t element_;
  bool widens_;
  PieceLimit limit_;
  std::vector<Stage> stages_;
  Arena arena_;
};

// nn::conv of frames + 2: the result, and what there is beside it meanwhile.
Arena::Block Rehearsal::convolved(const StageShape& shape, std::int64_t frames) {
  const std::int64_t input = (frames + kHistory) * shape.in * shape.area * element_;
  const auto bordered =
      shape.border == 1 ? 0 : static_cast<std::int64_t>(static_cast<double>(input) * shape.border);
  const std::int64_t out = frames * shape.out * shape.area * element_;
  const std::int64_t weight = shape.in * shape.out * kTaps * element_;
  Arena::Block padded = arena_.take(bordered), ordered = arena_.take(bordered);
  // The weights channels last (the widened ones are), and in the convolution library's order.
  Arena::Block channels_last = arena_.take(widens_ ? 0 : weight_copy(shape));
  Arena::Block part;  // of the output channels; it is there before the whole result
  if (weight > nn::kConvWeightTile)
    part = arena_.take(static_cast<std::int64_t>(static_cast<double>(out) * nn::kConvWeightTile /
                                                 static_cast<double>(weight)));
  Arena::Block result = arena_.take(out);
  arena_.brief(weight_copy(shape));
  for (Arena::Block* block : {&padded, &ordered, &channels_last, &part}) arena_.give_back(*block);
  return result;
}

// TimeConv::push.  `x` is given back before it convolves, if it has a block.
Frames Rehearsal::convolve(const StageShape& shape, Conv& conv, Frames x, Last last, bool normed, Old old) {
  if (x.count == 0 && !conv.running) return {};
  const std::int64_t frame = shape.in * shape.area * element_;
  const std::int64_t copies = causal_ ? kHistory : kHistory / 2;
  const std::int64_t total =
      x.count + (conv.running ? kHistory : copies) + (last == Last::yes && !causal_ ? kHistory / 2 : 0);
  Arena::Block buffer = arena_.take(total * frame);
  if (normed) arena_.brief((element_ < kF32 ? 2 * shape.in * kF32 : kF32) * shape.area);
  Arena::Block kept = arena_.take(last == Last::no ? kHistory * frame : 0);
  if (old == Old::free) arena_.give_back(conv.history);
  conv.history = kept;
  conv.running = last == Last::no;
  arena_.give_back(x.block);
  const std::int64_t out = std::max<std::int64_t>(total - kHistory, 0);
  Arena::Block result = out ? convolved(shape, out) : Arena::Block();
  arena_.give_back(buffer);
  return {out, result};
}

Frames Rehearsal::push_residual(Stage& stage, std::int64_t n, Last last) {
  Arena::Block old = stage.conv1.history;  // the skip path's, until the end
  Frames h = convolve(stage.shape, stage.conv1, {n, {}}, last, true, Old::keep);
  h = convolve(stage.shape, stage.conv2, h, last, true, Old::free);
  arena_.give_back(old);
  return h;
}

// Stage::push.
Frames Rehearsal::push(Stage& stage, std::int64_t n, Last last) {
  const StageShape& shape = stage.shape;
  if (shape.kind == Kind::residual) return push_residual(stage, n, last);
  Arena::Block old = shape.skips ? stage.conv1.history : Arena::Block();
  Frames h = convolve(shape, stage.conv1, {n, {}}, last, shape.kind == Kind::conv_out,
                      shape.skips ? Old::keep : Old::free);
  if (shape.kind != Kind::upsample) return h;
  const std::int64_t bytes = h.count * shape.out * shape.area * element_;
  Arena::Block shuffled = arena_.take(bytes);
  if (shape.skips) arena_.brief(2 * bytes);  // the skip path, shuffled and repeated
  arena_.give_back(h.block);
  arena_.give_back(old);
  const std::int64_t dropped = std::min(stage.to_drop, h.count * shape.stride_t);
  stage.to_drop -= dropped;
  return {h.count * shape.stride_t - dropped, shuffled};
}

// VideoDecodeStream::feed: `x` is given back with the last piece.
void Rehearsal::feed(std::size_t index, Frames x, Last last) {
  if (index == stages_.size()) {
    const StageShape& end = stages_.back().shape;
    arena_.brief(x.count * end.out * end.area * element_);  // unpatchified
    arena_.give_back(x.block);
    return;
  }
  const StageShape& shape = stages_[index].shape;
  const std::int64_t frame = std::max(shape.in, shape.out) * shape.area * element_;
  const std::int64_t step = limit_.at(frame, stages_[index].rate);
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
    elements += (stage.kind == Kind::residual ? 2 : 1) * kHistory * stage.in * stage.area;
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
