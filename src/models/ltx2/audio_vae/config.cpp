#include "models/ltx2/audio_vae/config.h"

#include "nn/config_reader.h"

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::size_t kLevels = 3;  // kRatio = 2 · 2: between two of them time and bins are halved

void refuse_what_is_not_implemented(const nn::ConfigReader& read) {
  if (read.required<std::string>("norm_type") != "pixel") throw read.unsupported("norm_type");
  if (read.required<std::string>("causality_axis") != "height") throw read.unsupported("causality_axis");
  if (read.required<bool>("mid_block_add_attention")) throw read.unsupported("mid_block_add_attention");
  if (read.has("attn_resolutions") && !read.at("attn_resolutions").empty())
    throw read.unsupported("attn_resolutions");
  read.only("double_z", true);
}

}  // namespace

std::int64_t AudioVaeConfig::mel_frames(std::int64_t latents) const {
  return std::max<std::int64_t>(kRatio * latents - (kRatio - 1), 1);
}

std::int64_t AudioVaeConfig::latents(std::int64_t mel_frames) const {
  return (mel_frames + kRatio - 1) / kRatio;
}

AudioVaeConfig AudioVaeConfig::parse(const nlohmann::json& json, const std::string& where) {
  nn::ConfigReader read(json, where);
  refuse_what_is_not_implemented(read);
  AudioVaeConfig config;
  config.base_channels = read.required<std::int64_t>("base_channels");
  config.ch_mult = read.required<std::vector<std::int64_t>>("ch_mult");
  config.num_res_blocks = read.required<std::int64_t>("num_res_blocks");
  config.latent_channels = read.required<std::int64_t>("latent_channels");
  config.in_channels = read.required<std::int64_t>("in_channels");
  config.output_channels = read.required<std::int64_t>("output_channels");
  config.mel_bins = read.required<std::int64_t>("mel_bins");
  config.sample_rate = read.required<std::int64_t>("sample_rate");
  config.mel_hop_length = read.required<std::int64_t>("mel_hop_length");
  if (config.ch_mult.size() != kLevels) throw read.unsupported("ch_mult");
  if (config.mel_bins < 1 || config.mel_bins % kRatio) throw read.unsupported("mel_bins");
  return config;
}

}  // namespace sluice::ltx2
