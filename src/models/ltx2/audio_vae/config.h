#pragma once
// The configuration of the audio autoencoder, under the names diffusers gives its keys.

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::ltx2 {

struct AudioVaeConfig {
  std::int64_t base_channels = 0;
  std::vector<std::int64_t>
      ch_mult;  // channels of level i: base_channels · ch_mult[i]; the last is at latent rate
  std::int64_t num_res_blocks = 0;  // of the encoder; the decoder has one more a level
  std::int64_t latent_channels = 0;
  std::int64_t in_channels = 0;      // of the encoder's spectrograms; 2: stereo
  std::int64_t output_channels = 0;  // of the decoder's
  std::int64_t mel_bins = 0;
  std::int64_t sample_rate = 0;
  std::int64_t mel_hop_length = 0;  // samples a mel frame

  static constexpr std::int64_t kRatio =
      4;  // mel frames a latent, and mel bins a latent bin; fixed by the reference

  std::int64_t latent_bins() const { return mel_bins / kRatio; }
  std::int64_t packed_channels() const { return latent_channels * latent_bins(); }
  std::int64_t mel_frames(std::int64_t latents) const;  // 4 L - 3: the first latent is one frame
  std::int64_t latents(std::int64_t mel_frames) const;  // that encoding gives: T / 4, rounded up

  // Keys as AutoencoderKLLTX2Audio of diffusers 0.42.1; all that are read are required, except
  // attn_resolutions. Refused by name: attention, group norm, causality along another axis than time, another
  // number of levels than kRatio takes. `where`
  // names the source in errors.
  static AudioVaeConfig parse(const nlohmann::json& config, const std::string& where = "audio vae");
};

}  // namespace sluice::ltx2
