#pragma once
// The configuration of the video autoencoder's decoder, under the names diffusers gives its keys.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::ltx2 {

enum class SpatialPadding { zeros, reflect };

// One block of the decoder in execution order: the upsampler, then the residual blocks.
struct UpBlockConfig {
  std::int64_t in_channels = 0;  // what the upsampler takes
  std::int64_t channels = 0;     // width of the block: in_channels / upsample_factor
  std::int64_t layers = 0;
  std::int64_t stride_t = 1;
  std::int64_t stride_h = 1;
  std::int64_t stride_w = 1;
  bool residual = false;  // the upsampler adds its shuffled input

  std::int64_t shuffle() const { return stride_t * stride_h * stride_w; }
};

struct VideoVaeConfig {
  std::int64_t latent_channels = 0;
  std::int64_t out_channels = 0;  // 3
  std::int64_t mid_channels = 0;  // width of conv_in and mid_block
  std::int64_t mid_layers = 0;
  std::vector<UpBlockConfig> up_blocks;
  std::int64_t patch_size = 0;  // pixels a side that the last convolution makes of one position
  bool decoder_causal = false;
  SpatialPadding decoder_padding = SpatialPadding::zeros;
  double scaling_factor = 1.0;

  std::int64_t temporal_ratio()
      const;  // frames a latent frame; a clip of F latents has ratio · (F - 1) + 1 frames
  std::int64_t spatial_ratio() const;  // pixels a latent, each side
  std::int64_t last_channels() const;  // width of the last block

  // Keys as AutoencoderKLLTX2Video of diffusers 0.42.1, but a missing one that would change the network is an
  // error (of all keys read, only scaling_factor has a default).  What the decoder does not implement is
  // refused by name: timestep conditioning, injected noise, blocks without upsampler, patches over time,
  // blocks that change their channels with a shortcut convolution.  Keys of the encoder are not looked at.
  // `where` names the source in errors.
  static VideoVaeConfig parse(const nlohmann::json& config, const std::string& where = "video vae");
};

}  // namespace sluice::ltx2
