#pragma once
// The configuration of a latent upsampler, under the names diffusers or the published files give its keys.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>

namespace sluice::ltx2 {

struct UpsamplerConfig {
  std::int64_t in_channels = 0;   // latent channels
  std::int64_t mid_channels = 0;  // a multiple of 32
  std::int64_t blocks = 0;        // per stage
  bool frame_by_frame = false;    // dims 2: convolutions and norms see one frame; spatial alone
  bool spatial = false;           // height and width grow by scale_num / scale_den
  bool temporal = false;          // F latent frames become 2 F - 1
  bool rational = false;          // the layout with a blur (also of scale 2); spatial alone
  std::int64_t scale_num = 2;     // 1.5 is 3 / 2
  std::int64_t scale_den = 1;

  // `config`: the metadata's or config.json's keys.  A missing key has the official program's default: what a
  // wrong one would change shows in the shapes of the weights.  mid_channels is required: open_upsampler()
  // takes it from them.  Error(bad_input) names what is not implemented.
  static UpsamplerConfig parse(const nlohmann::json& config, const std::string& where);
};

}  // namespace sluice::ltx2
