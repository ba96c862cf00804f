#pragma once
// What decoder and encoder are made of: convolutions of 3x3x3, and residual blocks of two.  Slots only;
// time_stream.h computes.

#include "nn/conv.h"
#include "weights/parameters.h"

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct VideoResidualBlock {
  nn::Conv conv1, conv2;
};

// Slots <scope>.conv.weight and .bias.
void declare_video_conv(const weights::ParameterScope& scope, nn::Conv& conv, std::int64_t in,
                        std::int64_t out);

// `count` blocks under <scope>.0, <scope>.1, ….
void declare_video_resnets(const weights::ParameterScope& scope, std::vector<VideoResidualBlock>& resnets,
                           std::int64_t count, std::int64_t channels);

}  // namespace sluice::ltx2
