#include "models/ltx2/video_vae/blocks.h"

namespace sluice::ltx2 {

void declare_video_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in,
                        std::int64_t out) {
  nn::declare(scope / "conv", conv, {.in = in, .out = out, .kernel = {3, 3, 3}});
}

void declare_video_resnets(const weights::ParameterScope& scope, std::vector<VideoResidualBlock>& resnets,
                           std::int64_t count, std::int64_t channels) {
  resnets.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; i++) {
    VideoResidualBlock& block = resnets[static_cast<std::size_t>(i)];
    declare_video_conv(scope / i / "conv1", block.conv1, channels, channels);
    declare_video_conv(scope / i / "conv2", block.conv2, channels, channels);
  }
}

}  // namespace sluice::ltx2
