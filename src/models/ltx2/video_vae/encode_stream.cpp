#include "models/ltx2/video_vae/encode_stream.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::ltx2 {
namespace {

std::vector<std::unique_ptr<Stage>> make_stages(const VideoEncoder& encoder) {
  const VideoEncoderConfig& config = encoder.config();
  const TimeConvConfig as_is = {.entry = Entry::as_is, .causal = config.causal, .padding = config.padding};
  const TimeConvConfig normed = {.entry = Entry::normed, .causal = config.causal, .padding = config.padding};

  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<ConvStage>(encoder.conv_in(), as_is));
  for (std::size_t i = 0; i < encoder.down_blocks().size(); i++) {
    const VideoDownBlock& block = encoder.down_blocks()[i];
    for (const VideoResidualBlock& resnet : block.resnets)
      stages.push_back(std::make_unique<ResidualStage>(resnet, normed));
    stages.push_back(std::make_unique<DownsampleStage>(block.downsampler, config.down_blocks[i], as_is));
  }
  for (const VideoResidualBlock& resnet : encoder.mid_block())
    stages.push_back(std::make_unique<ResidualStage>(resnet, normed));
  stages.push_back(std::make_unique<ConvStage>(encoder.conv_out(), normed));
  return stages;
}

// DiagonalGaussianDistribution's bounds.
constexpr double kLeastLogvar = -30, kMostLogvar = 20;

EncodedFrames posterior(const at::Tensor& moments) {
  const std::int64_t channels = moments.size(1) - 1;
  return {.mean = moments.narrow(1, 0, channels).to(at::kFloat, false, true, at::MemoryFormat::Contiguous),
          .logvar = moments.narrow(1, channels, 1)
                        .to(at::kFloat, false, true, at::MemoryFormat::Contiguous)
                        .clamp_(kLeastLogvar, kMostLogvar)};
}

}  // namespace

// Frames are gathered as the first convolution takes them until a piece is whole, so that no work depends on
// how many come at once.
class VideoEncodeStream::Stages {
 public:
  Stages(const VideoEncoder& encoder, weights::WeightSource& source, at::ScalarType compute, LatentSink sink,
         EncodePiece piece)
      : config_(encoder.config()),
        lease_(source.acquire(encoder.encoder_group())),
        compute_(compute),
        sink_(std::move(sink)),
        piece_(std::max<std::int64_t>(piece.frames, 1)),
        stages_(make_stages(encoder)) {}

  void push(const at::Tensor& frames, Last last);
  std::int64_t state_bytes() const;

 private:
  void check(const at::Tensor& frames, Last last) const;
  void gather(const at::Tensor& frames, std::int64_t room);
  void encode(Last last);

  const VideoEncoderConfig& config_;
  weights::WeightLease lease_;
  at::ScalarType compute_;
  LatentSink sink_;
  std::int64_t piece_;
  std::vector<std::unique_ptr<Stage>> stages_;
  at::Tensor gathered_;  // room for a piece
  std::int64_t in_piece_ = 0;
  std::int64_t frames_ = 0;  // pushed so far
  std::int64_t height_ = 0, width_ = 0;
  bool ended_ = false;
};

void VideoEncodeStream::Stages::check(const at::Tensor& frames, Last last) const {
  if (ended_) throw Error(ErrorKind::internal, "video encoder: frames after the last piece of the clip");
  const std::int64_t ratio = config_.spatial_ratio();
  if (frames.dim() != 5 || frames.size(0) != 1 || frames.size(1) != config_.in_channels ||
      frames.scalar_type() != at::kFloat)
    throw Error(ErrorKind::internal,
                fmt::format("video encoder: frames {} of {}, not [1, {}, frames, height, width] of f32",
                            fmt::join(frames.sizes(), " x "), c10::toString(frames.scalar_type()),
                            config_.in_channels));
  const std::int64_t height = frames.size(3), width = frames.size(4);
  if (height < 1 || width < 1 || height % ratio || width % ratio)
    throw Error(ErrorKind::internal,
                fmt::format("video encoder: a picture of {} x {}, no multiple of {}", width, height, ratio));
  if (frames_ && (height != height_ || width != width_))
    throw Error(ErrorKind::internal, fmt::format("video encoder: a picture of {} x {} in a clip of {} x {}",
                                                 width, height, width_, height_));
  const std::int64_t total = frames_ + frames.size(2);
  if (last == Last::yes && (total < 1 || (total - 1) % config_.temporal_ratio()))
    throw Error(ErrorKind::internal, fmt::format("video encoder: a clip of {} frames, not {} k + 1", total,
                                                 config_.temporal_ratio()));
}

void VideoEncodeStream::Stages::push(const at::Tensor& frames, Last last) {
  check(frames, last);
  ended_ = last == Last::yes;
  frames_ += frames.size(2);
  height_ = frames.size(3);
  width_ = frames.size(4);
  const std::int64_t count = frames.size(2);
  std::int64_t start = 0;
  do {
    const std::int64_t taken = std::min(count - start, piece_ - in_piece_);
    const std::int64_t room = ended_ ? std::min(piece_, in_piece_ + count - start) : piece_;
    if (taken) gather(frames.narrow(2, start, taken), room);
    start += taken;
    const bool ends = ended_ && start == count;
    if (ends || in_piece_ == piece_) encode(ends ? Last::yes : Last::no);
  } while (start < count);
}

void VideoEncodeStream::Stages::gather(const at::Tensor& frames, std::int64_t room) {
  const std::int64_t patch = config_.patch_size;
  if (!gathered_.defined())
    gathered_ = at::empty({1, config_.in_channels * patch * patch, room, height_ / patch, width_ / patch},
                          at::TensorOptions(compute_).memory_format(at::MemoryFormat::ChannelsLast3d));
  patchify(frames, patch, gathered_.narrow(2, in_piece_, frames.size(2)));
  in_piece_ += frames.size(2);
}

void VideoEncodeStream::Stages::encode(Last last) {
  at::Tensor x = gathered_.defined() ? gathered_.narrow(2, 0, in_piece_) : at::Tensor();
  gathered_ = at::Tensor();
  in_piece_ = 0;
  for (const auto& stage : stages_) {
    x = stage->push(x, last);
    if (frame_count(x) == 0 && last == Last::no) return;
  }
  if (frame_count(x)) sink_(posterior(x));
}

std::int64_t VideoEncodeStream::Stages::state_bytes() const {
  std::int64_t bytes = gathered_.defined() ? static_cast<std::int64_t>(gathered_.nbytes()) : 0;
  for (const auto& stage : stages_) bytes += stage->state_bytes();
  return bytes;
}

VideoEncodeStream::VideoEncodeStream(const VideoEncoder& encoder, weights::WeightSource& source,
                                     at::ScalarType compute, LatentSink sink, EncodePiece piece)
    : stages_(std::make_unique<Stages>(encoder, source, compute, std::move(sink), piece)) {}

VideoEncodeStream::~VideoEncodeStream() = default;

void VideoEncodeStream::push(const at::Tensor& frames, Last last) {
  stages_->push(frames, last);
}

std::int64_t VideoEncodeStream::state_bytes() const {
  return stages_->state_bytes();
}

EncodedFrames encode_video(const VideoEncoder& encoder, weights::WeightSource& source, at::ScalarType compute,
                           const at::Tensor& frames, EncodePiece piece) {
  std::vector<at::Tensor> means, logvars;
  VideoEncodeStream stream(
      encoder, source, compute,
      [&](const EncodedFrames& latents) {
        means.push_back(latents.mean);
        logvars.push_back(latents.logvar);
      },
      piece);
  stream.push(frames, Last::yes);
  return {.mean = at::cat(means, 2), .logvar = at::cat(logvars, 2)};
}

}  // namespace sluice::ltx2
