// mel_frontend/*: a wave at any rate to its log-mel spectrogram.
#include "models/ltx2/audio_vae/mel_frontend.h"
#include "parity/registry.h"

#include <ATen/ATen.h>

namespace sluice::parity {
namespace {

Results run_mel_frontend(const Case& parity_case) {
  const ltx2::MelFrontend frontend = {.sample_rate = parity_case.config_value<std::int64_t>("sample_rate"),
                                      .window = parity_case.config_value<std::int64_t>("n_fft"),
                                      .hop = parity_case.config_value<std::int64_t>("hop_length"),
                                      .mel_bins = parity_case.config_value<std::int64_t>("n_mels"),
                                      .lowest = parity_case.config_value<double>("f_min"),
                                      .highest = parity_case.config_value<double>("f_max")};
  const at::Tensor wave = parity_case.input("waveform")[0];
  const at::Tensor resampled =
      ltx2::resample_wave(wave, parity_case.param<std::int64_t>("sampling_rate"), frontend.sample_rate);
  Results results;
  results.add("resampled", resampled.unsqueeze(0));
  results.add("mel", ltx2::log_mel(resampled, frontend).unsqueeze(0));
  return results;
}

}  // namespace

void add_mel_frontend(Registry& registry) {
  registry.add("mel_frontend", "", run_mel_frontend);
}

}  // namespace sluice::parity
