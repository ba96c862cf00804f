#include "models/ltx2/video_vae/decode_stream.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

std::vector<std::unique_ptr<Stage>> make_stages(const VideoDecoder& decoder) {
  const VideoVaeConfig& config = decoder.config();
  const TimeConvConfig as_is = {
      .entry = Entry::as_is, .causal = config.decoder_causal, .padding = config.decoder_padding};
  const TimeConvConfig normed = {
      .entry = Entry::normed, .causal = config.decoder_causal, .padding = config.decoder_padding};

  std::vector<std::unique_ptr<Stage>> stages;
  stages.push_back(std::make_unique<ConvStage>(decoder.conv_in(), as_is));
  for (const VideoResidualBlock& block : decoder.mid_block())
    stages.push_back(std::make_unique<ResidualStage>(block, normed));
  for (std::size_t i = 0; i < decoder.up_blocks().size(); i++) {
    const VideoUpBlock& block = decoder.up_blocks()[i];
    stages.push_back(std::make_unique<UpsampleStage>(block.upsampler, config.up_blocks[i], as_is));
    for (const VideoResidualBlock& resnet : block.resnets)
      stages.push_back(std::make_unique<ResidualStage>(resnet, normed));
  }
  stages.push_back(std::make_unique<ConvStage>(decoder.conv_out(), normed));
  return stages;
}

std::vector<std::int64_t> input_rates(const std::vector<std::unique_ptr<Stage>>& stages) {
  std::vector<std::int64_t> rates;
  std::int64_t rate = 1;
  for (const auto& stage : stages) {
    rates.push_back(rate);
    rate *= stage->stride_t();
  }
  return rates;
}

}  // namespace

std::int64_t PieceLimit::at(std::int64_t frame_bytes, std::int64_t rate) const {
  const std::int64_t most = latent_frames > frames / rate ? frames : latent_frames * rate;
  return std::clamp<std::int64_t>(bytes / frame_bytes, 1, most);
}

VideoDecodeStream::VideoDecodeStream(const VideoDecoder& decoder, weights::WeightSource& source,
                                     FrameSink sink, PieceLimit limit)
    : decoder_(decoder),
      lease_(source.acquire(decoder.decoder_group())),
      sink_(std::move(sink)),
      limit_(limit),
      stages_(make_stages(decoder)),
      rates_(input_rates(stages_)) {}

void VideoDecodeStream::check_latents(const at::Tensor& latents) const {
  if (ended_) throw Error(ErrorKind::internal, "video decoder: latents after the last piece of the clip");
  if (latents.dim() != 5 || latents.size(1) != decoder_.config().latent_channels)
    throw Error(
        ErrorKind::internal,
        fmt::format(
            "video decoder: latents of {} dimensions, channels {}, not [batch, {}, frames, height, width]",
            latents.dim(), latents.dim() > 1 ? latents.size(1) : 0, decoder_.config().latent_channels));
}

void VideoDecodeStream::push(const at::Tensor& latents, Last last) {
  check_latents(latents);
  started_ = started_ || frame_count(latents) > 0;
  if (last == Last::yes && !started_)
    throw Error(ErrorKind::internal, "video decoder: a clip without a frame");
  ended_ = last == Last::yes;
  feed(0, latents, last);
}

// `x` is let go of before its last piece goes on, so that of a row of stages only one holds a tensor in
// flight.
void VideoDecodeStream::feed(std::size_t index, at::Tensor x, Last last) {
  if (index == stages_.size()) {
    if (frame_count(x)) sink_(unpatchify(x, decoder_.config().patch_size));
    return;
  }
  Stage& stage = *stages_[index];
  const std::int64_t total = frame_count(x);
  const std::int64_t step = total ? piece_frames(index, x) : 1;
  for (std::int64_t start = 0; start == 0 || start < total; start += step) {
    const std::int64_t end = std::min(total, start + step);
    at::Tensor piece = total ? x.narrow(2, start, end - start) : at::Tensor();
    if (end == total) x = at::Tensor();
    const Last ends = end == total ? last : Last::no;
    at::Tensor y = stage.push(piece, ends);
    piece = at::Tensor();
    if (frame_count(y) || ends == Last::yes) feed(index + 1, std::move(y), ends);
  }
}

std::int64_t VideoDecodeStream::piece_frames(std::size_t stage, const at::Tensor& x) const {
  const std::int64_t frame_bytes = x.size(0) * stages_[stage]->widest() * x.size(3) * x.size(4) *
                                   static_cast<std::int64_t>(x.element_size());
  return limit_.at(frame_bytes, rates_[stage]);
}

std::int64_t VideoDecodeStream::state_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& stage : stages_) bytes += stage->state_bytes();
  return bytes;
}

at::Tensor decode_video(const VideoDecoder& decoder, weights::WeightSource& source, const at::Tensor& latents,
                        PieceLimit limit) {
  std::vector<at::Tensor> pieces;
  VideoDecodeStream stream(
      decoder, source, [&](const at::Tensor& frames) { pieces.push_back(frames); }, limit);
  stream.push(latents, Last::yes);
  return at::cat(pieces, 2);
}

}  // namespace sluice::ltx2
