#include "models/ltx2/audio_vae/decoder.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

constexpr double kPixelNormEps = 1e-6;   // the video autoencoder has 1e-8
constexpr std::int64_t kCausalRows = 2;  // of zeros before the first time step

void declare_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in, std::int64_t out,
                  std::int64_t kernel = 3) {
  nn::declare(scope / "conv", conv, {.in = in, .out = out, .kernel = {kernel, kernel}});
}

void declare_block(const weights::ParameterScope& scope, AudioResidualBlock& block, std::int64_t in,
                   std::int64_t out) {
  declare_conv(scope / "conv1", block.conv1, in, out);
  declare_conv(scope / "conv2", block.conv2, out, out);
  if (in != out) declare_conv(scope / "nin_shortcut", block.nin_shortcut, in, out, 1);
}

// 3x3 over (time, mel), causal: two rows of zeros before the first time step, none behind the last.  `fill`
// writes the input behind them, so that it exists once.
template <typename Fill>
at::Tensor causal_conv(const nn::Conv& conv, const at::Tensor& like, at::IntArrayRef shape, Fill fill) {
  at::Tensor padded = at::empty({shape[0], shape[1], shape[2] + kCausalRows, shape[3]},
                                like.options().memory_format(at::MemoryFormat::ChannelsLast));
  padded.narrow(2, 0, kCausalRows).zero_();
  fill(padded.narrow(2, kCausalRows, shape[2]));
  return nn::conv(conv, padded, {.padding = {0, 1}});
}

at::Tensor plain_conv(const nn::Conv& conv, const at::Tensor& x) {
  return causal_conv(conv, x, x.sizes(), [&](at::Tensor to) { to.copy_(x); });
}

at::Tensor normed_conv(const nn::Conv& conv, const at::Tensor& x) {
  return causal_conv(conv, x, x.sizes(),
                     [&](const at::Tensor& to) { nn::pixel_norm_silu_into(to, x, kPixelNormEps); });
}

at::Tensor residual_block(const AudioResidualBlock& block, const at::Tensor& x) {
  at::Tensor h = normed_conv(block.conv2, normed_conv(block.conv1, x));
  return h.add_(block.nin_shortcut.weight.defined() ? nn::conv(block.nin_shortcut, x) : x);
}

// Twice as many time steps and mel bins; the first time step goes: the causal axis starts with a single
// frame.
at::Tensor upsample(const nn::Conv& conv, const at::Tensor& x) {
  const std::int64_t steps = 2 * x.size(2), bins = 2 * x.size(3);
  at::Tensor wide = causal_conv(conv, x, {x.size(0), x.size(1), steps, bins}, [&](const at::Tensor& to) {
    to.unflatten(3, {x.size(3), 2}).unflatten(2, {x.size(2), 2}).copy_(x.unsqueeze(3).unsqueeze(5));
  });
  return wide.narrow(2, 1, steps - 1);
}

// Exactly so many time steps and mel bins: the rest is cut off, what is missing is zero.
at::Tensor fit(const at::Tensor& mel, std::int64_t frames, std::int64_t bins) {
  return at::constant_pad_nd(mel, {0, bins - mel.size(3), 0, frames - mel.size(2)}).contiguous();
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
  declare_conv(scope / "conv_in", conv_in_, config_.latent_channels, channels);
  declare_block(scope / "mid" / "block_1", mid_block_1_, channels, channels);
  declare_block(scope / "mid" / "block_2", mid_block_2_, channels, channels);
  up_.resize(config_.ch_mult.size());
  for (std::size_t level = up_.size(); level-- > 0;) {
    weights::ParameterScope at = scope / "up" / static_cast<std::int64_t>(level);
    const std::int64_t width = config_.base_channels * config_.ch_mult[level];
    up_[level].blocks.resize(static_cast<std::size_t>(config_.num_res_blocks) + 1);
    for (std::size_t i = 0; i < up_[level].blocks.size(); i++) {
      declare_block(at / "block" / static_cast<std::int64_t>(i), up_[level].blocks[i], channels, width);
      channels = width;
    }
    if (level > 0) declare_conv(at / "upsample" / "conv", up_[level].upsample, channels, channels);
  }
  declare_conv(scope / "conv_out", conv_out_, channels, config_.output_channels);
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
  at::Tensor x = plain_conv(conv_in_, latents);
  x = residual_block(mid_block_1_, x);
  x = residual_block(mid_block_2_, x);
  for (std::size_t level = up_.size(); level-- > 0;) {
    for (const AudioResidualBlock& block : up_[level].blocks) x = residual_block(block, x);
    if (level > 0) x = upsample(up_[level].upsample, x);
  }
  return fit(normed_conv(conv_out_, x), config_.mel_frames(latents.size(2)), config_.mel_bins);
}

at::Tensor normalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed) {
  return (packed - statistics.mean.to(packed.scalar_type())) / statistics.std.to(packed.scalar_type());
}

at::Tensor denormalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed) {
  return packed * statistics.std.to(packed.scalar_type()) + statistics.mean.to(packed.scalar_type());
}

}  // namespace sluice::ltx2
