#pragma once
// The configuration of the video autoencoder's encoder, under the names diffusers gives its keys.

#include "models/ltx2/video_vae/config.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::ltx2 {

// One block in execution order: the residual blocks, then the downsampler.
struct DownBlockConfig {
  std::int64_t channels = 0;      // of the residual blocks, and what the downsampler takes
  std::int64_t out_channels = 0;  // what it makes
  std::int64_t layers = 0;
  std::int64_t stride_t = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;

  std::int64_t shuffle() const { return stride_t * stride_h * stride_w; }
  std::int64_t conv_channels() const { return out_channels / shuffle(); }  // the downsampler's convolution
  std::int64_t mean_of() const { return channels * shuffle() / out_channels; }  // channels a skip value is
};

struct VideoEncoderConfig {
  std::int64_t in_channels = 0;  // 3
  std::int64_t latent_channels = 0;
  std::int64_t patch_size = 0;
  std::int64_t first_channels = 0;  // what conv_in makes
  std::vector<DownBlockConfig> down_blocks;
  std::int64_t mid_layers = 0;
  bool causal = true;
  SpatialPadding padding = SpatialPadding::zeros;

  std::int64_t temporal_ratio() const;  // frames a latent frame
  std::int64_t spatial_ratio() const;   // pixels a latent, each side
  std::int64_t mid_channels() const { return down_blocks.back().out_channels; }

  // Keys as AutoencoderKLLTX2Video of diffusers 0.42.1; a missing one that would change the network is an
  // error, and what is not implemented is refused by name.  `where` names the source in errors.
  static VideoEncoderConfig parse(const nlohmann::json& config, const std::string& where = "video vae");
};

}  // namespace sluice::ltx2
