#pragma once
// The vocoder with bandwidth extension (reference: LTX2VocoderWithBWE of diffusers 0.42.1): a log-mel
// spectrogram to a wave at 16 kHz, and from that wave's own mel what is missing at 48 kHz.  All in f32,
// whatever the weights' dtype: over 108 convolutions in a row bf16 would degrade the spectrum.  Runs whole:
// the convolutions look ahead in time, and a clip's sound is small (5 s: 8 MiB a tensor).

#include "models/ltx2/vocoder/config.h"
#include "models/ltx2/vocoder/generator.h"
#include "weights/component.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice::ltx2 {

// What each part gives, f32.  C wave channels, N samples at the low rate, r = output rate / input rate.
struct VocoderResult {
  at::Tensor low_rate;   // [batch, C, N]
  at::Tensor inner_mel;  // [batch, C, ceil(N / hop), mel bins]
  at::Tensor residual;   // [batch, C, r N'], N' = N up to a multiple of hop
  at::Tensor skip;       // [batch, C, r N']
  at::Tensor waveform;   // [batch, C, r N], in [-1, 1]
};

class Vocoder {
 public:
  explicit Vocoder(VocoderConfig config);
  Vocoder(const Vocoder&) = delete;
  Vocoder& operator=(const Vocoder&) = delete;

  const VocoderConfig& config() const { return config_; }
  std::vector<const weights::ParameterGroup*> groups() const;

  // What else a vocoder's files hold, and why it is not read; for weights::account().
  static std::vector<weights::IgnoreRule> ignore_rules();

  // mel: [batch, C, T, bins] of any floating dtype.  Leases one group after the other.
  VocoderResult run(weights::WeightSource& source, const at::Tensor& mel) const;

 private:
  struct InnerMel {
    at::Tensor forward_basis;  // [2 · frequencies, 1, filter_length]: real rows, then imaginary rows
    at::Tensor mel_basis;      // [mel bins, frequencies]
  };

  at::Tensor inner_mel(const at::Tensor& wave) const;

  VocoderConfig config_;
  Generator vocoder_;
  Generator bwe_generator_;
  InnerMel inner_mel_;
  weights::ParameterGroup vocoder_group_;
  weights::ParameterGroup inner_mel_group_;
  weights::ParameterGroup bwe_group_;
};

}  // namespace sluice::ltx2
