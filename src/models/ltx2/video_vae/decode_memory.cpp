#include "models/ltx2/video_vae/decode_memory.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
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

// Goes through a clip as VideoDecodeStream does, with counts of frames for tensors.
class Rehearsal {
 public:
  Rehearsal(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes, PieceLimit limit)
      : causal_(config.decoder_causal),
        element_(element_bytes(dtypes.compute)),
        widens_(dtypes.compute != dtypes.weights),
        limit_(limit) {
    std::int64_t rate = 1;
    for (const StageShape& shape : stage_shapes(config, clip)) {
      stages_.push_back({shape, rate, {}, {}, shape.stride_t - 1});
      rate *= shape.stride_t;
      if (widens_) live_ = std::max(live_, weight_copy(shape));  // the block of widened weights only grows
    }
  }

  std::int64_t peak(std::int64_t frames) {
    feed(0, frames, 0, Last::yes);
    return peak_;
  }

 private:
  struct Conv {
    bool running = false;  // has a history
  };
  struct Stage {
    StageShape shape;
    std::int64_t rate;  // of its input
    Conv conv1, conv2;
    std::int64_t to_drop;
  };

  // Of those output channels that are convolved at once.
  std::int64_t weight_copy(const StageShape& shape) const {
    return std::min(shape.in * shape.out * kTaps * element_, nn::kConvWeightTile);
  }

  void take(std::int64_t bytes) { peak_ = std::max(peak_, live_ += bytes); }
  void give_back(std::int64_t bytes) { live_ -= bytes; }

  void feed(std::size_t index, std::int64_t total, std::int64_t bytes, Last last);
  std::int64_t push(Stage& stage, std::int64_t n, Last last, std::int64_t& bytes);
  std::int64_t convolve(const StageShape& shape, Conv& conv, std::int64_t n, Last last, bool normed,
                        std::int64_t input_bytes);

  bool causal_;
  std::int64_t element_;
  bool widens_;
  PieceLimit limit_;
  std::vector<Stage> stages_;
  std::int64_t live_ = 0;
  std::int64_t peak_ = 0;
};

// TimeConv::push: takes the frames that come out, gives back input_bytes (the input, if the caller does not
// keep it).
std::int64_t Rehearsal::convolve(const StageShape& shape, Conv& conv, std::int64_t n, Last last, bool normed,
                                 std::int64_t input_bytes) {
  if (n == 0 && !conv.running) return 0;
  const std::int64_t frame = shape.in * shape.area * element_;
  const std::int64_t copies = causal_ ? kHistory : kHistory / 2;
  const std::int64_t total =
      n + (conv.running ? kHistory : copies) + (last == Last::yes && !causal_ ? kHistory / 2 : 0);
  take(total * frame);
  const std::int64_t norm = !normed ? 0 : (element_ < kF32 ? 2 * shape.in * kF32 : kF32) * shape.area;
  take(norm);
  give_back(norm);
  if (last == Last::no) take(kHistory * frame);  // the new history, while the old one is still there
  if (conv.running) give_back(kHistory * frame);
  conv.running = last == Last::no;
  give_back(input_bytes);
  const std::int64_t out = std::max<std::int64_t>(total - kHistory, 0);
  const auto bordered =
      shape.border == 1 ? 0 : static_cast<std::int64_t>(static_cast<double>(total * frame) * shape.border);
  const std::int64_t out_bytes = out * shape.out * shape.area * element_;
  const std::int64_t weight = shape.in * shape.out * kTaps * element_;
  const std::int64_t part = weight > nn::kConvWeightTile ? out_bytes * nn::kConvWeightTile / weight : 0;
  if (out) {
    // The weights channels last (the widened ones are), and in the convolution library's order.
    const std::int64_t weights = (widens_ ? 1 : 2) * weight_copy(shape);
    const std::int64_t beside = 2 * bordered + part + weights;
    take(out_bytes + beside);
    give_back(beside);
  }
  give_back(total * frame);
  return out;
}

// Stage::push: returns the frames that come out, `bytes` of them.
std::int64_t Rehearsal::push(Stage& stage, std::int64_t n, Last last, std::int64_t& bytes) {
  const StageShape& shape = stage.shape;
  const std::int64_t frame = shape.out * shape.area * element_;
  if (shape.kind == Kind::residual) {
    const std::int64_t old = stage.conv1.running ? kHistory * frame : 0;  // the skip path's, until the end
    take(old);
    std::int64_t out = convolve(shape, stage.conv1, n, last, true, 0);
    out = convolve(shape, stage.conv2, out, last, true, out * frame);
    give_back(old);
    bytes = out * frame;
    return out;
  }
  std::int64_t out = convolve(shape, stage.conv1, n, last, shape.kind == Kind::conv_out, 0);
  bytes = out * frame;
  if (shape.kind != Kind::upsample) return out;
  // Shuffled; a skip path is shuffled and repeated besides.
  take(shape.skips ? 3 * bytes : bytes);
  give_back(shape.skips ? 3 * bytes : bytes);
  out *= shape.stride_t;
  const std::int64_t dropped = std::min(stage.to_drop, out);
  stage.to_drop -= dropped;
  return out - dropped;
}

// VideoDecodeStream::feed: `bytes` of `total` frames are given back with the last piece.
void Rehearsal::feed(std::size_t index, std::int64_t total, std::int64_t bytes, Last last) {
  if (index == stages_.size()) {
    take(bytes);  // unpatchified
    give_back(2 * bytes);
    return;
  }
  const StageShape& shape = stages_[index].shape;
  const std::int64_t frame = std::max(shape.in, shape.out) * shape.area * element_;
  const std::int64_t step = limit_.at(frame, stages_[index].rate);
  for (std::int64_t start = 0; start == 0 || start < total; start += step) {
    const std::int64_t end = std::min(total, start + step);
    const Last ends = end == total ? last : Last::no;
    std::int64_t out_bytes = 0;
    const std::int64_t out = push(stages_[index], end - start, ends, out_bytes);
    if (end == total) give_back(bytes);
    if (out || ends == Last::yes) {
      feed(index + 1, out, out_bytes, ends);
    } else {
      give_back(out_bytes);
    }
  }
}

}  // namespace

std::int64_t video_decode_memory(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                                 PieceLimit limit) {
  return Rehearsal(config, clip, dtypes, limit).peak(clip.frames);
}

std::int64_t video_decode_state(const VideoVaeConfig& config, const LatentClip& clip,
                                at::ScalarType compute) {
  std::int64_t elements = 0;
  for (const StageShape& stage : stage_shapes(config, clip))
    elements += (stage.kind == Kind::residual ? 2 : 1) * kHistory * stage.in * stage.area;
  return elements * element_bytes(compute);
}

PieceLimit fit_pieces(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                      std::int64_t budget) {
  std::int64_t least = 0;
  for (PieceLimit limit;; limit.bytes /= 2) {
    least = video_decode_memory(config, clip, dtypes, limit);
    if (least <= budget) return limit;
    if (limit.bytes == 0) break;
  }
  throw Error(ErrorKind::does_not_fit,
              fmt::format("decoding {}x{} latents takes {} even frame by frame, {} are left", clip.width,
                          clip.height, format_bytes(static_cast<Bytes>(least)),
                          format_bytes(static_cast<Bytes>(std::max<std::int64_t>(budget, 0)))),
              "use a smaller picture, --compute-dtype bf16, or a larger --memory-limit");
}

}  // namespace sluice::ltx2
