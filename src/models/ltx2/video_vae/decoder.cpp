#include "models/ltx2/video_vae/decoder.h"

namespace sluice::ltx2 {
namespace {

const std::vector<std::int64_t> kKernel = {3, 3, 3};

void declare_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in, std::int64_t out) {
  nn::declare(scope / "conv", conv, {.in = in, .out = out, .kernel = kKernel});
}

void declare_resnets(const weights::ParameterScope& scope, std::vector<VideoResidualBlock>& resnets,
                     std::int64_t count, std::int64_t channels) {
  resnets.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; i++) {
    VideoResidualBlock& block = resnets[static_cast<std::size_t>(i)];
    declare_conv(scope / i / "conv1", block.conv1, channels, channels);
    declare_conv(scope / i / "conv2", block.conv2, channels, channels);
  }
}

}  // namespace

VideoDecoder::VideoDecoder(VideoVaeConfig config) : config_(std::move(config)) {
  statistics_group_.name = "latent statistics";
  weights::ParameterScope statistics(statistics_group_);
  statistics.add("latents_mean", statistics_.mean, {config_.latent_channels});
  statistics.add("latents_std", statistics_.std, {config_.latent_channels});
  declare_decoder();
}

void VideoDecoder::declare_decoder() {
  decoder_group_.name = "decoder";
  weights::ParameterScope scope(decoder_group_, "decoder");
  declare_conv(scope / "conv_in", conv_in_, config_.latent_channels, config_.mid_channels);
  declare_resnets(scope / "mid_block" / "resnets", mid_block_, config_.mid_layers, config_.mid_channels);
  up_blocks_.resize(config_.up_blocks.size());
  for (std::size_t i = 0; i < up_blocks_.size(); i++) {
    const UpBlockConfig& block = config_.up_blocks[i];
    weights::ParameterScope at = scope / "up_blocks" / static_cast<std::int64_t>(i);
    declare_conv(at / "upsamplers" / 0 / "conv", up_blocks_[i].upsampler, block.in_channels,
                 block.channels * block.shuffle());
    declare_resnets(at / "resnets", up_blocks_[i].resnets, block.layers, block.channels);
  }
  declare_conv(scope / "conv_out", conv_out_, config_.last_channels(),
               config_.out_channels * config_.patch_size * config_.patch_size);
}

std::vector<weights::IgnoreRule> VideoDecoder::ignore_rules() {
  return {{"encoder.", "decoding does not encode"}};
}

}  // namespace sluice::ltx2
