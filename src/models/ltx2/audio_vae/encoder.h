#pragma once
// The encoder of the audio autoencoder (reference: AutoencoderKLLTX2Audio of diffusers 0.42.1, encode half):
// log-mel spectrograms (mel_frontend.h) to latents.  Statistics are the decoder's (decoder.h).

#include "models/ltx2/audio_vae/decoder.h"

#include <sluice/units.h>

namespace sluice::ltx2 {

struct AudioDownLevel {
  std::vector<AudioResidualBlock> blocks;
  nn::Conv downsample;  // all but the last level
};

class AudioEncoder {
 public:
  explicit AudioEncoder(AudioVaeConfig config);
  AudioEncoder(const AudioEncoder&) = delete;
  AudioEncoder& operator=(const AudioEncoder&) = delete;

  const AudioVaeConfig& config() const { return config_; }
  const weights::ParameterGroup& encoder_group() const { return encoder_group_; }  // encoder.*
  std::vector<const weights::ParameterGroup*> groups() const { return {&encoder_group_}; }

  // What else an audio autoencoder's files hold, and why encoding does not read it; for weights::account().
  static std::vector<weights::IgnoreRule> ignore_rules();

  // mel: [1, in_channels, T, mel_bins], f32 -> the posterior's mode [1, latent_channels, ceil(ceil(T/2)/2),
  // latent_bins], f32, denormalised.  `compute`: f32 or bf16.  Leases encoder_group().
  at::Tensor encode(weights::WeightSource& source, const at::Tensor& mel, at::ScalarType compute) const;

 private:
  AudioVaeConfig config_;
  nn::Conv conv_in_, conv_out_;
  std::vector<AudioDownLevel> down_;
  AudioResidualBlock mid_block_1_, mid_block_2_;
  weights::ParameterGroup encoder_group_;
};

// What encode() takes at most beside the weights in their files.
Bytes sound_encode_memory(const AudioVaeConfig& config, std::int64_t mel_frames, at::ScalarType compute);

}  // namespace sluice::ltx2
