#include "models/ltx2/upsampler/config.h"

#include "nn/config_reader.h"

#include <fmt/format.h>

#include <string_view>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kNormGroups = 32;
// Far above any model, far below where a product of sizes ends.
constexpr std::int64_t kMostChannels = 1 << 16;
constexpr std::int64_t kMostBlocks = 1 << 10;

std::int64_t bounded(const nn::ConfigReader& read, std::string_view key, std::int64_t most,
                     std::optional<std::int64_t> fallback = std::nullopt) {
  const std::int64_t value = read.count(key, fallback);
  if (value > most) throw read.unsupported(key);
  return value;
}

// The same switch under diffusers' name and under the published files'.
std::string_view present(const nn::ConfigReader& read, std::string_view diffusers,
                         std::string_view published) {
  return read.has(diffusers) ? diffusers : published;
}

void set_scale(UpsamplerConfig& config, const nn::ConfigReader& read) {
  const std::string_view key = present(read, "rational_spatial_scale", "spatial_scale");
  const double scale = read.value_or<double>(key, 2);
  if (scale != 2 && !config.rational) throw read.unsupported(key);
  if (scale == 2) return;
  if (scale == 0.75) {
    config.scale_num = 3, config.scale_den = 4;
  } else if (scale == 1.5) {
    config.scale_num = 3, config.scale_den = 2;
  } else if (scale == 4) {
    config.scale_num = 4, config.scale_den = 1;
  } else {
    throw read.unsupported(key);
  }
}

}  // namespace

UpsamplerConfig UpsamplerConfig::parse(const nlohmann::json& json, const std::string& where) {
  const nn::ConfigReader read(json, where);
  UpsamplerConfig config;
  config.in_channels = bounded(read, "in_channels", kMostChannels, 128);
  config.mid_channels = bounded(read, "mid_channels", kMostChannels);
  config.blocks = bounded(read, "num_blocks_per_stage", kMostBlocks, 4);
  config.spatial = read.value_or("spatial_upsample", true);
  config.temporal = read.value_or("temporal_upsample", false);
  if (config.mid_channels % kNormGroups) throw read.unsupported("mid_channels");
  if (!config.spatial && !config.temporal)
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: neither 'spatial_upsample' nor 'temporal_upsample' is true", where),
                "use a latent upsampler as published");

  const std::int64_t dims = read.count("dims", 3);
  config.frame_by_frame = dims == 2;
  if (dims < 2 || dims > 3 || (config.frame_by_frame && config.temporal)) throw read.unsupported("dims");
  if (!config.spatial) return config;
  // Beside time, the reference has one layout.
  config.rational =
      !config.temporal && read.value_or(present(read, "use_rational_resampler", "rational_resampler"), false);
  set_scale(config, read);
  return config;
}

}  // namespace sluice::ltx2
