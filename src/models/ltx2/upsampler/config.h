#pragma once
// The configuration of a latent upsampler, under the names diffusers gives its keys.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sluice::ltx2 {

struct UpsamplerConfig {
  std::int64_t in_channels = 0;   // latent channels
  std::int64_t mid_channels = 0;  // a multiple of 32
  std::int64_t blocks = 0;        // per stage
  bool spatial = false;           // height and width grow by scale_num / scale_den
  bool temporal = false;          // F latent frames become 2 F - 1
  bool rational = false;          // the layout with a blur (also of scale 2)
  std::int64_t scale_num = 2;
  std::int64_t scale_den = 1;

  // `config`: the metadata's or config.json's keys; Error(bad_input) names what is not implemented.
  static UpsamplerConfig parse(const nlohmann::json& config, const std::string& where);
};

}  // namespace sluice::ltx2
