#pragma once
// The decoder of the audio autoencoder (reference: AutoencoderKLLTX2Audio of diffusers 0.42.1, decode half):
// latents to log-mel spectrograms.  Small enough to run whole: 5 s of sound take 100 MiB in f32.

#include "models/ltx2/audio_vae/config.h"
#include "models/ltx2/audio_vae/residual_block.h"
#include "nn/conv.h"
#include "weights/component.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice::ltx2 {

struct AudioLatentStatistics {
  at::Tensor mean;  // [latent_channels · latent_bins]: of the packed form
  at::Tensor std;
};

struct AudioUpLevel {
  std::vector<AudioResidualBlock> blocks;
  nn::Conv upsample;  // all but level 0
};

class AudioDecoder {
 public:
  explicit AudioDecoder(AudioVaeConfig config);
  AudioDecoder(const AudioDecoder&) = delete;
  AudioDecoder& operator=(const AudioDecoder&) = delete;

  const AudioVaeConfig& config() const { return config_; }

  const weights::ParameterGroup& statistics_group() const {
    return statistics_group_;
  }  // latents_mean, latents_std
  const weights::ParameterGroup& decoder_group() const { return decoder_group_; }  // decoder.*
  std::vector<const weights::ParameterGroup*> groups() const { return {&statistics_group_, &decoder_group_}; }

  // What else an audio autoencoder's files hold, and why decoding does not read it; for weights::account().
  static std::vector<weights::IgnoreRule> ignore_rules();

  const AudioLatentStatistics& statistics() const {
    return statistics_;
  }  // while statistics_group() is leased

  // [batch, latent_channels, L, latent_bins], denormalised -> log-mel [batch, output_channels, 4 L - 3,
  // mel_bins], in the latents' dtype.  Leases decoder_group().
  at::Tensor decode(weights::WeightSource& source, const at::Tensor& latents) const;

 private:
  void declare_decoder();
  at::Tensor forward(const at::Tensor& latents) const;
  at::Tensor decode_clip(const at::Tensor& latents) const;

  AudioVaeConfig config_;
  AudioLatentStatistics statistics_;
  nn::Conv conv_in_, conv_out_;
  AudioResidualBlock mid_block_1_, mid_block_2_;
  std::vector<AudioUpLevel> up_;  // index = level; run from the last to the first
  weights::ParameterGroup statistics_group_;
  weights::ParameterGroup decoder_group_;
};

// Packed latents as the transformer has them, [batch, L, latent_channels · latent_bins]; statistics act on
// this form and are cast to its dtype.
at::Tensor normalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed);
at::Tensor denormalize_packed(const AudioLatentStatistics& statistics, const at::Tensor& packed);

}  // namespace sluice::ltx2
