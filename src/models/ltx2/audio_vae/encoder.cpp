#include "models/ltx2/audio_vae/encoder.h"

#include "models/ltx2/audio_vae/causal_conv.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

// The rows that give the posterior's mean; those behind give its variance, which nobody asks for.
nn::Conv mean_of(const nn::Conv& conv, std::int64_t latent_channels) {
  return {.weight = conv.weight.narrow(0, 0, latent_channels),
          .bias = conv.bias.narrow(0, 0, latent_channels)};
}

}  // namespace

AudioEncoder::AudioEncoder(AudioVaeConfig config) : config_(std::move(config)) {
  encoder_group_.name = "encoder";
  const weights::ParameterScope scope(encoder_group_, "encoder");
  std::int64_t channels = config_.base_channels;
  declare_causal_conv(scope / "conv_in", conv_in_, config_.in_channels, channels);
  down_.resize(config_.ch_mult.size());
  for (std::size_t level = 0; level < down_.size(); level++) {
    const weights::ParameterScope at = scope / "down" / static_cast<std::int64_t>(level);
    const std::int64_t width = config_.base_channels * config_.ch_mult[level];
    down_[level].blocks.resize(static_cast<std::size_t>(config_.num_res_blocks));
    for (std::size_t i = 0; i < down_[level].blocks.size(); i++) {
      declare(at / "block" / static_cast<std::int64_t>(i), down_[level].blocks[i], channels, width);
      channels = width;
    }
    if (level + 1 < down_.size())
      declare_causal_conv(at / "downsample", down_[level].downsample, channels, channels);
  }
  declare(scope / "mid" / "block_1", mid_block_1_, channels, channels);
  declare(scope / "mid" / "block_2", mid_block_2_, channels, channels);
  declare_causal_conv(scope / "conv_out", conv_out_, channels, 2 * config_.latent_channels);
}

std::vector<weights::IgnoreRule> AudioEncoder::ignore_rules() {
  return {{"decoder.", "encoding does not decode"}};
}

at::Tensor AudioEncoder::encode(weights::WeightSource& source, const at::Tensor& mel,
                                at::ScalarType compute) const {
  if (mel.dim() != 4 || mel.size(0) != 1 || mel.size(1) != config_.in_channels || mel.size(2) == 0 ||
      mel.size(3) != config_.mel_bins)
    throw Error(ErrorKind::internal,
                fmt::format("audio encoder: a spectrogram is not [1, {}, frames > 0, {}]",
                            config_.in_channels, config_.mel_bins));
  const weights::WeightLease lease = source.acquire(encoder_group_);
  at::Tensor x = mel[0].permute({1, 2, 0}).to(compute).contiguous();  // [time steps, bins, channels]
  x = causal_conv(conv_in_, x);
  for (const AudioDownLevel& level : down_) {
    for (const AudioResidualBlock& block : level.blocks) x = residual_block(block, x);
    if (level.downsample.weight.defined()) x = downsampling_conv(level.downsample, x);
  }
  x = residual_block(mid_block_1_, x);
  x = residual_block(mid_block_2_, x);
  x = normed_causal_conv(mean_of(conv_out_, config_.latent_channels), x);
  return x.permute({2, 0, 1}).unsqueeze(0).to(at::kFloat).contiguous();
}

}  // namespace sluice::ltx2
