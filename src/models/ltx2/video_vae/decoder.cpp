#include "models/ltx2/video_vae/decoder.h"

namespace sluice::ltx2 {

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
  declare_video_conv(scope / "conv_in", conv_in_, config_.latent_channels, config_.mid_channels);
  declare_video_resnets(scope / "mid_block" / "resnets", mid_block_, config_.mid_layers,
                        config_.mid_channels);
  up_blocks_.resize(config_.up_blocks.size());
  for (std::size_t i = 0; i < up_blocks_.size(); i++) {
    const UpBlockConfig& block = config_.up_blocks[i];
    weights::ParameterScope at = scope / "up_blocks" / static_cast<std::int64_t>(i);
    declare_video_conv(at / "upsamplers" / 0 / "conv", up_blocks_[i].upsampler, block.in_channels,
                       block.channels * block.shuffle());
    declare_video_resnets(at / "resnets", up_blocks_[i].resnets, block.layers, block.channels);
  }
  declare_video_conv(scope / "conv_out", conv_out_, config_.last_channels(),
                     config_.out_channels * config_.patch_size * config_.patch_size);
}

std::vector<weights::IgnoreRule> VideoDecoder::ignore_rules() {
  return {{"encoder.", "decoding does not encode"}};
}

}  // namespace sluice::ltx2
