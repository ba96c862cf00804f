#include "models/ltx2/audio_vae/decoder.h"

#include "models/ltx2/audio_vae/causal_conv.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

// Exactly so many time steps and mel bins: the rest is cut off, what is missing is zero.
at::Tensor fit(const at::Tensor& mel, std::int64_t frames, std::int64_t bins) {
  return at::constant_pad_nd(mel, {0, bins - mel.size(2), 0, frames - mel.size(1)});
}

}  // namespace

AudioDecoder::AudioDecoder(AudioVaeConfig config) : config_(std::move(config)) {
  statistics_group_.name = "latent statistics";
  weights::ParameterScope statistics(statistics_group_);
  statistics.add("latents_mean", statistics_.mean, {config_.packed_channels()});
  statistics.add("latents_std", statistics_.std, {config_.packed_channels()});
  declare_decoder();
}

void AudioDecoder::declare_decoder() {
  decoder_group_.name = "decoder";
  weights::ParameterScope scope(decoder_group_, "decoder");
  std::int64_t channels = config_.base_channels * config_.ch_mult.back();
  declare_causal_conv(scope / "conv_in", conv_in_, config_.latent_channels, channels);
  declare(scope / "mid" / "block_1", mid_block_1_, channels, channels);
  declare(scope / "mid" / "block_2", mid_block_2_, channels, channels);
  up_.resize(config_.ch_mult.size());
  for (std::size_t level = up_.size(); level-- > 0;) {
    weights::ParameterScope at = scope / "up" / static_cast<std::int64_t>(level);
    const std::int64_t width = config_.base_channels * config_.ch_mult[level];
    up_[level].blocks.resize(static_cast<std::size_t>(config_.num_res_blocks) + 1);
    for (std::size_t i = 0; i < up_[level].blocks.size(); i++) {
      declare(at / "block" / static_cast<std::int64_t>(i), up_[level].blocks[i], channels, width);
      channels = width;
    }
    if (level > 0) declare_causal_conv(at / "upsample" / "conv", up_[level].upsample, channels, channels);
  }
  declare_causal_conv(scope / "conv_out", conv_out_, channels, config_.output_channels);
}

std::vector<weights::IgnoreRule> AudioDecoder::ignore_rules() {
  return {{"encoder.", "decoding does not encode"}};
}

at::Tensor AudioDecoder::decode(weights::WeightSource& source, const at::Tensor& latents) const {
  if (latents.dim() != 4 || latents.size(1) != config_.latent_channels ||
      latents.size(3) != config_.latent_bins() || latents.size(2) == 0)
    throw Error(ErrorKind::internal, fmt::format("audio decoder: latents are not [batch, {}, L > 0, {}]",
                                                 config_.latent_channels, config_.latent_bins()));
  weights::WeightLease lease = source.acquire(decoder_group_);
  return forward(latents);
}

at::Tensor AudioDecoder::forward(const at::Tensor& latents) const {
  std::vector<at::Tensor> mels;
  for (const at::Tensor& clip : latents.unbind(0)) mels.push_back(decode_clip(clip));
  return at::stack(mels);
}

// [latent channels, L, latent bins] -> [output channels, frames, mel bins]
at::Tensor AudioDecoder::decode_clip(const at::Tensor& latents) const {
  at::Tensor x =
      causal_conv(conv_in_, latents.permute({1, 2, 0}).contiguous());  // [time steps, bins, channels]
  x = residual_block(mid_block_1_, x);
  x = residual_block(mid_block_2_, x);
  for (std::size_t level = up_.size(); level-- > 0;) {
    for (const AudioResidualBlock& block : up_[level].blocks) x = residual_block(block, x);
    if (level > 0) x = upsampling_conv(up_[level].upsample, x);
  }
  const at::Tensor mel = normed_causal_conv(conv_out_, x).permute({2, 0, 1});
  return fit(mel, config_.mel_frames(latents.size(1)), config_.mel_bins);
}

at::Tensor normalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed) {
  return (packed - statistics.mean.to(packed.scalar_type())) / statistics.std.to(packed.scalar_type());
}

at::Tensor denormalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed) {
  return packed * statistics.std.to(packed.scalar_type()) + statistics.mean.to(packed.scalar_type());
}

}  // namespace sluice::ltx2
