#include "models/ltx2/video_vae/encoder.h"

namespace sluice::ltx2 {

VideoEncoder::VideoEncoder(VideoEncoderConfig config) : config_(std::move(config)) {
  encoder_group_.name = "encoder";
  weights::ParameterScope scope(encoder_group_, "encoder");
  declare_video_conv(scope / "conv_in", conv_in_,
                     config_.in_channels * config_.patch_size * config_.patch_size, config_.first_channels);
  down_blocks_.resize(config_.down_blocks.size());
  for (std::size_t i = 0; i < down_blocks_.size(); i++) {
    const DownBlockConfig& block = config_.down_blocks[i];
    const weights::ParameterScope at = scope / "down_blocks" / static_cast<std::int64_t>(i);
    declare_video_resnets(at / "resnets", down_blocks_[i].resnets, block.layers, block.channels);
    declare_video_conv(at / "downsamplers" / 0 / "conv", down_blocks_[i].downsampler, block.channels,
                       block.conv_channels());
  }
  declare_video_resnets(scope / "mid_block" / "resnets", mid_block_, config_.mid_layers,
                        config_.mid_channels());
  // The last channel is the log variance that all latent channels share.
  declare_video_conv(scope / "conv_out", conv_out_, config_.mid_channels(), config_.latent_channels + 1);
}

}  // namespace sluice::ltx2
