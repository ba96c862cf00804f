#include "models/ltx2/video_vae/config.h"

#include "nn/config_reader.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace sluice::ltx2 {
namespace {

using Numbers = std::vector<std::int64_t>;

Error bad_config(const nn::ConfigReader& read, const std::string& what) {
  return Error(ErrorKind::bad_input, fmt::format("{}: {}", read.where(), what), "use the published config");
}

// A list with one entry a block; diffusers also takes a single boolean for all.
std::vector<bool> flags(const nn::ConfigReader& read, std::string_view key, std::size_t count) {
  if (read.has(key) && read.at(key).is_boolean()) return std::vector<bool>(count, read.required<bool>(key));
  return read.required<std::vector<bool>>(key);
}

template <typename T>
void expect_entries(const nn::ConfigReader& read, std::string_view key, const std::vector<T>& list,
                    std::size_t count) {
  if (list.size() != count)
    throw bad_config(read, fmt::format("'{}' has {} entries, its blocks need {}", key, list.size(), count));
}

void refuse_what_is_not_implemented(const nn::ConfigReader& read, std::size_t blocks) {
  if (read.required<bool>("timestep_conditioning")) throw read.unsupported("timestep_conditioning");
  std::vector<bool> noise = flags(read, "decoder_inject_noise", blocks + 1);
  if (std::count(noise.begin(), noise.end(), true)) throw read.unsupported("decoder_inject_noise");
  std::vector<bool> scaling = flags(read, "decoder_spatio_temporal_scaling", blocks);
  if (std::count(scaling.begin(), scaling.end(), false))
    throw read.unsupported("decoder_spatio_temporal_scaling");
  if (read.required<std::int64_t>("patch_size_t") != 1) throw read.unsupported("patch_size_t");
}

SpatialPadding padding_mode(const nn::ConfigReader& read, std::string_view key) {
  auto mode = read.required<std::string>(key);
  if (mode == "zeros") return SpatialPadding::zeros;
  if (mode == "reflect") return SpatialPadding::reflect;
  throw read.unsupported(key);
}

void set_strides(const nn::ConfigReader& read, UpBlockConfig& block, const std::string& type) {
  if (type != "spatial" && type != "temporal" && type != "spatiotemporal")
    throw read.unsupported("upsample_type");
  block.stride_t = type == "spatial" ? 1 : 2;
  block.stride_h = block.stride_w = type == "temporal" ? 1 : 2;
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
  if (count == 0) throw bad_config(read, "'decoder_block_out_channels' is empty");
  expect_entries(read, "decoder_layers_per_block", layers, count + 1);
  expect_entries(read, "upsample_factor", factors, count);
  expect_entries(read, "upsample_type", types, count);
  expect_entries(read, "upsample_residual", residual, count);

  std::vector<UpBlockConfig> blocks(count);
  for (std::size_t i = 0; i < count; i++) {
    const std::size_t from_end = count - 1 - i;
    UpBlockConfig& block = blocks[i];
    set_strides(read, block, types[i]);
    block.in_channels = channels[from_end];
    block.layers = layers[from_end];
    block.residual = residual[from_end];
    const std::int64_t factor = factors[from_end];
    if (factor < 1 || block.in_channels < 1 || block.in_channels % factor)
      throw bad_config(read, fmt::format("'upsample_factor' {} does not divide block {}'s {} channels",
                                         factor, i, block.in_channels));
    if (block.residual && (block.in_channels % block.shuffle() || block.shuffle() % factor))
      throw bad_config(
          read, fmt::format("'upsample_residual' of block {}: {} channels cannot be repeated into {}", i,
                            block.in_channels, block.in_channels / factor));
    block.channels = block.in_channels / factor;
    if (i > 0 && blocks[i - 1].channels != block.in_channels)
      throw bad_config(read,
                       fmt::format("decoder block {} takes {} channels and the one before it makes {}: a "
                                   "shortcut convolution between them is not implemented",
                                   i, block.in_channels, blocks[i - 1].channels));
  }
  return blocks;
}

void check_ratio(const nn::ConfigReader& read, std::string_view key, std::int64_t computed) {
  std::int64_t stated = read.value_or(key, computed);
  if (stated != computed)
    throw bad_config(read, fmt::format("'{}' is {}, the decoder's blocks make {}", key, stated, computed));
}

std::int64_t product(const std::vector<UpBlockConfig>& blocks, std::int64_t UpBlockConfig::*member) {
  return std::transform_reduce(blocks.begin(), blocks.end(), std::int64_t{1}, std::multiplies<>{},
                               [&](const UpBlockConfig& block) { return block.*member; });
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
  check_ratio(read, "temporal_compression_ratio", config.temporal_ratio());
  check_ratio(read, "spatial_compression_ratio", config.spatial_ratio());
  return config;
}

}  // namespace sluice::ltx2
