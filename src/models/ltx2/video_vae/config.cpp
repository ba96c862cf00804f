#include "models/ltx2/video_vae/config.h"

#include "models/ltx2/video_vae/config_parts.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

using namespace vae_config;

void refuse_what_is_not_implemented(const nn::ConfigReader& read, std::size_t blocks) {
  if (read.required<bool>("timestep_conditioning")) throw read.unsupported("timestep_conditioning");
  std::vector<bool> noise = flags(read, "decoder_inject_noise", blocks + 1);
  if (std::count(noise.begin(), noise.end(), true)) throw read.unsupported("decoder_inject_noise");
  std::vector<bool> scaling = flags(read, "decoder_spatio_temporal_scaling", blocks);
  if (std::count(scaling.begin(), scaling.end(), false))
    throw read.unsupported("decoder_spatio_temporal_scaling");
  if (read.required<std::int64_t>("patch_size_t") != 1) throw read.unsupported("patch_size_t");
}

// The lists count from the pixel end and are reversed here, except upsample_type, which is in execution
// order.
std::vector<UpBlockConfig> parse_blocks(const nn::ConfigReader& read) {
  auto channels = read.required<Numbers>("decoder_block_out_channels");
  const std::size_t count = channels.size();
  auto layers = read.required<Numbers>("decoder_layers_per_block");
  auto factors = read.required<Numbers>("upsample_factor");
  auto types = read.required<std::vector<std::string>>("upsample_type");
  auto residual = flags(read, "upsample_residual", count);
  if (count == 0) throw bad(read, "'decoder_block_out_channels' is empty");
  expect_entries(read, "decoder_layers_per_block", layers, count + 1);
  expect_entries(read, "upsample_factor", factors, count);
  expect_entries(read, "upsample_type", types, count);
  expect_entries(read, "upsample_residual", residual, count);

  std::vector<UpBlockConfig> blocks(count);
  for (std::size_t i = 0; i < count; i++) {
    const std::size_t from_end = count - 1 - i;
    UpBlockConfig& block = blocks[i];
    set_strides(read, "upsample_type", types[i], block);
    block.in_channels = channels[from_end];
    block.layers = layers[from_end];
    block.residual = residual[from_end];
    const std::int64_t factor = factors[from_end];
    if (factor < 1 || block.in_channels < 1 || block.in_channels % factor)
      throw bad(read, fmt::format("'upsample_factor' {} does not divide block {}'s {} channels", factor, i,
                                  block.in_channels));
    if (block.residual && (block.in_channels % block.shuffle() || block.shuffle() % factor))
      throw bad(read, fmt::format("'upsample_residual' of block {}: {} channels cannot be repeated into {}",
                                  i, block.in_channels, block.in_channels / factor));
    block.channels = block.in_channels / factor;
    if (i > 0 && blocks[i - 1].channels != block.in_channels)
      throw bad(read, fmt::format("decoder block {} takes {} channels and the one before it makes {}: a "
                                  "shortcut convolution between them is not implemented",
                                  i, block.in_channels, blocks[i - 1].channels));
  }
  return blocks;
}

}  // namespace

std::int64_t VideoVaeConfig::temporal_ratio() const {
  return product(up_blocks, &UpBlockConfig::stride_t);
}

std::int64_t VideoVaeConfig::spatial_ratio() const {
  return patch_size * product(up_blocks, &UpBlockConfig::stride_h);
}

std::int64_t VideoVaeConfig::last_channels() const {
  return up_blocks.back().channels;
}

VideoVaeConfig VideoVaeConfig::parse(const nlohmann::json& json, const std::string& where) {
  nn::ConfigReader read(json, where);
  VideoVaeConfig config;
  config.latent_channels = read.required<std::int64_t>("latent_channels");
  config.out_channels = read.required<std::int64_t>("out_channels");
  config.patch_size = read.required<std::int64_t>("patch_size");
  config.up_blocks = parse_blocks(read);
  refuse_what_is_not_implemented(read, config.up_blocks.size());
  config.mid_channels = config.up_blocks.front().in_channels;
  config.mid_layers = read.required<Numbers>("decoder_layers_per_block").back();
  config.decoder_causal = read.required<bool>("decoder_causal");
  config.decoder_padding = padding_mode(read, "decoder_spatial_padding_mode");
  config.scaling_factor = read.value_or("scaling_factor", 1.0);
  check_ratio(read, "temporal_compression_ratio", config.temporal_ratio(), "decoder");
  check_ratio(read, "spatial_compression_ratio", config.spatial_ratio(), "decoder");
  return config;
}

}  // namespace sluice::ltx2
