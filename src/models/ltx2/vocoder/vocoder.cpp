#include "models/ltx2/vocoder/vocoder.h"

#include "models/ltx2/vocoder/line.h"
#include "models/ltx2/vocoder/resample.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr double kMelFloor = 1e-5;

at::Tensor padded_to_multiple(const at::Tensor& wave, std::int64_t of) {
  const std::int64_t missing = (of - wave.size(2) % of) % of;
  return missing ? at::constant_pad_nd(wave, {0, missing}) : wave;
}

}  // namespace

Vocoder::Vocoder(VocoderConfig config) : config_(std::move(config)) {
  vocoder_group_.name = "vocoder";
  bwe_group_.name = "bwe_generator";
  inner_mel_group_.name = "mel_stft";
  declare(weights::ParameterScope(vocoder_group_, "vocoder"), vocoder_, config_.vocoder);
  declare(weights::ParameterScope(bwe_group_, "bwe_generator"), bwe_generator_, config_.bwe_generator);
  const InnerMelConfig& mel = config_.inner_mel;
  weights::ParameterScope scope(inner_mel_group_, "mel_stft");
  scope.add("stft_fn.forward_basis", inner_mel_.forward_basis, {2 * mel.frequencies(), 1, mel.filter_length});
  scope.add("mel_basis", inner_mel_.mel_basis, {mel.num_mel_channels, mel.frequencies()});
}

std::vector<const weights::ParameterGroup*> Vocoder::groups() const {
  return {&vocoder_group_, &inner_mel_group_, &bwe_group_};
}

std::vector<weights::IgnoreRule> Vocoder::ignore_rules() {
  return {{"mel_stft.stft_fn.inverse_basis", "no spectrum is turned back into a wave"}};
}

// Log-mel spectrogram of each wave channel.  Causal: a frame ends with its hop, so zeros stand on the left
// only.
at::Tensor Vocoder::inner_mel(const at::Tensor& wave) const {
  const InnerMelConfig& config = config_.inner_mel;
  const at::Tensor x =
      at::constant_pad_nd(wave, {std::max<std::int64_t>(config.window_length - config.hop_length, 0), 0});
  const std::int64_t frames = (x.size(2) - config.filter_length) / config.hop_length + 1;
  at::Tensor mel = at::empty({wave.size(0), wave.size(1), frames, config.num_mel_channels}, x.options());
  for (std::int64_t clip = 0; clip < wave.size(0); clip++) {
    for (std::int64_t channel = 0; channel < wave.size(1); channel++) {
      // Windows overlap: the spectrum of a frame is the product with `hop` samples more.
      const at::Tensor spectrum = multiply_rows(
          inner_mel_.forward_basis.squeeze(1), x[clip][channel].data_ptr<float>(), frames, config.hop_length);
      const at::Tensor real = spectrum.narrow(1, 0, config.frequencies());
      const at::Tensor imaginary = spectrum.narrow(1, config.frequencies(), config.frequencies());
      const at::Tensor magnitude = (real.square() + imaginary.square()).sqrt_();
      mel[clip][channel].copy_(
          multiply_rows(inner_mel_.mel_basis, magnitude.data_ptr<float>(), frames, config.frequencies()));
    }
  }
  return mel.clamp_min_(kMelFloor).log_();
}

VocoderResult Vocoder::run(weights::WeightSource& source, const at::Tensor& mel) const {
  if (mel.dim() != 4 || mel.size(1) != config_.vocoder.out_channels ||
      mel.size(3) != config_.vocoder.mel_bins() || mel.size(2) == 0)
    throw Error(ErrorKind::internal, fmt::format("vocoder: the mel is not [batch, {}, frames > 0, {}]",
                                                 config_.vocoder.out_channels, config_.vocoder.mel_bins()));
  VocoderResult result;
  {
    weights::WeightLease lease = source.acquire(vocoder_group_);
    result.low_rate = generate_wave(vocoder_, mel.to(at::kFloat));
  }
  at::Tensor wave = padded_to_multiple(result.low_rate, config_.inner_mel.hop_length);
  {
    weights::WeightLease lease = source.acquire(inner_mel_group_);
    result.inner_mel = inner_mel(wave);
  }
  {
    weights::WeightLease lease = source.acquire(bwe_group_);
    result.residual = generate_wave(bwe_generator_, result.inner_mel);
  }
  result.skip = hann_sinc_resample(wave, config_.resample_ratio());
  at::Tensor sum = (result.residual + result.skip).clamp_(-1, 1);
  result.waveform = sum.narrow(2, 0, result.low_rate.size(2) * config_.resample_ratio());
  return result;
}

}  // namespace sluice::ltx2
