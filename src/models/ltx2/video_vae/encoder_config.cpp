#include "models/ltx2/video_vae/encoder_config.h"

#include "models/ltx2/video_vae/config_parts.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

using namespace vae_config;

constexpr const char* kDownBlock = "LTX2VideoDownBlock3D";

void refuse_what_is_not_implemented(const nn::ConfigReader& read, std::size_t blocks) {
  const std::vector<bool> scaling = flags(read, "spatio_temporal_scaling", blocks);
  expect_entries(read, "spatio_temporal_scaling", scaling, blocks);
  if (std::count(scaling.begin(), scaling.end(), false)) throw read.unsupported("spatio_temporal_scaling");
  const auto types = read.value_or<std::vector<std::string>>("down_block_types", {});
  if (std::any_of(types.begin(), types.end(), [](const std::string& type) { return type != kDownBlock; }))
    throw read.unsupported("down_block_types");
  if (read.required<std::int64_t>("patch_size_t") != 1) throw read.unsupported("patch_size_t");
}

void check_widths(const nn::ConfigReader& read, std::size_t index, const DownBlockConfig& block) {
  if (block.layers < 0)
    throw bad(read, fmt::format("'layers_per_block' of block {} is {}", index, block.layers));
  if (block.out_channels < 1 || block.out_channels % block.shuffle())
    throw bad(read,
              fmt::format("'block_out_channels' of block {}: {} channels are no multiple of the {} positions "
                          "that its downsampler joins",
                          index, block.out_channels, block.shuffle()));
  if (block.channels * block.shuffle() % block.out_channels)
    throw bad(read, fmt::format("'block_out_channels' of block {}: {} channels at {} positions cannot be "
                                "averaged into {}",
                                index, block.channels, block.shuffle(), block.out_channels));
}

// The lists are in execution order.
std::vector<DownBlockConfig> parse_blocks(const nn::ConfigReader& read, std::int64_t first_channels) {
  const auto channels = read.required<Numbers>("block_out_channels");
  const std::size_t count = channels.size();
  const auto layers = read.required<Numbers>("layers_per_block");
  const auto types = read.required<std::vector<std::string>>("downsample_type");
  if (count == 0) throw bad(read, "'block_out_channels' is empty");
  expect_entries(read, "layers_per_block", layers, count + 1);
  expect_entries(read, "downsample_type", types, count);

  std::vector<DownBlockConfig> blocks(count);
  for (std::size_t i = 0; i < count; i++) {
    DownBlockConfig& block = blocks[i];
    set_strides(read, "downsample_type", types[i], block);
    block.channels = i == 0 ? first_channels : channels[i - 1];
    block.out_channels = channels[i];
    block.layers = layers[i];
    check_widths(read, i, block);
  }
  return blocks;
}

}  // namespace

std::int64_t VideoEncoderConfig::temporal_ratio() const {
  return product(down_blocks, &DownBlockConfig::stride_t);
}

std::int64_t VideoEncoderConfig::spatial_ratio() const {
  return patch_size * product(down_blocks, &DownBlockConfig::stride_h);
}

VideoEncoderConfig VideoEncoderConfig::parse(const nlohmann::json& json, const std::string& where) {
  nn::ConfigReader read(json, where);
  VideoEncoderConfig config;
  config.in_channels = read.count("in_channels");
  config.latent_channels = read.count("latent_channels");
  config.patch_size = read.count("patch_size");
  // diffusers has no name for the first convolution's width: it is the latents'.
  config.first_channels = config.latent_channels;
  read.only("encoder_base_channels", config.first_channels);
  config.down_blocks = parse_blocks(read, config.first_channels);
  refuse_what_is_not_implemented(read, config.down_blocks.size());
  config.mid_layers = read.required<Numbers>("layers_per_block").back();
  if (config.mid_layers < 0)
    throw bad(read, fmt::format("'layers_per_block' ends with {}", config.mid_layers));
  config.causal = read.required<bool>("encoder_causal");
  config.padding = padding_mode(read, "encoder_spatial_padding_mode");
  check_ratio(read, "temporal_compression_ratio", config.temporal_ratio(), "encoder");
  check_ratio(read, "spatial_compression_ratio", config.spatial_ratio(), "encoder");
  return config;
}

}  // namespace sluice::ltx2
