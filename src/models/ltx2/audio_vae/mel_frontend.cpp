#include "models/ltx2/audio_vae/mel_frontend.h"

#include "models/ltx2/audio_vae/mel_filters.h"
#include "models/ltx2/audio_vae/resampler.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kPiece = 256;  // frames whose spectra exist at once: 2 MiB at a window of 1024
// What is worth a thread.
constexpr std::int64_t kSampleGrain = 1024, kFrameGrain = 16;
constexpr float kFloor = 1e-5F;     // of a magnitude
constexpr std::int64_t kParts = 2;  // real and imaginary

std::int64_t bytes_of_floats(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(float));
}

// Reflected at either end, without repeating the edge.
std::int64_t reflected(std::int64_t index, std::int64_t samples) {
  if (index < 0) return -index;
  return index < samples ? index : 2 * (samples - 1) - index;
}

// Frames [first, first + frames.size(0)), each under the window: to [frames, window].
void cut_frames(std::span<const float> wave, const MelFrontend& frontend, const at::Tensor& window,
                std::int64_t first, const at::Tensor& frames) {
  const auto samples = static_cast<std::int64_t>(wave.size());
  const auto* weight = window.const_data_ptr<float>();
  auto* to = frames.data_ptr<float>();
  for (std::int64_t frame = 0; frame < frames.size(0); ++frame) {
    const std::int64_t start = (first + frame) * frontend.hop - frontend.window / 2;
    for (std::int64_t i = 0; i < frontend.window; ++i)
      *to++ = weight[i] * wave[static_cast<std::size_t>(reflected(start + i, samples))];
  }
}

// One frame's spectrum, real and imaginary parts in turn, to its bins.
void weigh_frame(const float* spectrum, std::span<const MelFilter> filters, std::span<float> magnitudes,
                 float* mel) {
  for (std::size_t k = 0; k < magnitudes.size(); ++k)
    magnitudes[k] = std::hypot(spectrum[2 * k], spectrum[2 * k + 1]);
  for (const MelFilter& filter : filters) {
    float sum = 0;
    for (std::size_t i = 0; i < filter.weights.size(); ++i)
      sum += filter.weights[i] * magnitudes[static_cast<std::size_t>(filter.first) + i];
    *mel++ = std::log(std::max(sum, kFloor));
  }
}

// spectra: [frames, frequencies, 2] -> mel: [frames, bins]
void weigh(const at::Tensor& spectra, std::span<const MelFilter> filters, const at::Tensor& mel) {
  const at::Tensor x = spectra.contiguous();
  const auto* from = x.const_data_ptr<float>();
  auto* to = mel.data_ptr<float>();
  const std::int64_t frequencies = x.size(1), bins = mel.size(1);
  at::parallel_for(0, x.size(0), kFrameGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> magnitudes(static_cast<std::size_t>(frequencies));
    for (std::int64_t frame = begin; frame < end; ++frame)
      weigh_frame(from + frame * frequencies * kParts, filters, magnitudes, to + frame * bins);
  });
}

std::span<const float> samples_of(const at::Tensor& wave, std::int64_t channel) {
  return {wave.const_data_ptr<float>() + channel * wave.size(1), static_cast<std::size_t>(wave.size(1))};
}

std::vector<MelFilter> filters_of(const MelFrontend& frontend) {
  return mel_filters({.sample_rate = frontend.sample_rate,
                      .window = frontend.window,
                      .bins = frontend.mel_bins,
                      .lowest = frontend.lowest,
                      .highest = frontend.highest});
}

void check(const at::Tensor& wave, const MelFrontend& frontend) {
  if (wave.dim() == 2 && wave.scalar_type() == at::kFloat && wave.size(1) > frontend.window / 2) return;
  throw Error(
      ErrorKind::internal,
      fmt::format("mel front end: a wave is not f32 [channels, more than {} samples]", frontend.window / 2));
}

}  // namespace

MelFrontend mel_frontend_of(const AudioVaeConfig& config) {
  return {.sample_rate = config.sample_rate,
          .hop = config.mel_hop_length,
          .mel_bins = config.mel_bins,
          .highest = static_cast<double>(config.sample_rate) / 2};
}

at::Tensor resample_wave(const at::Tensor& wave, std::int64_t from, std::int64_t to) {
  if (from == to) return wave;
  const ResampleRatio ratio(from, to);
  const Resampler resampler(ratio);
  const at::Tensor x = wave.contiguous();
  at::Tensor y = at::empty({x.size(0), ratio.length(x.size(1))}, x.options());
  for (std::int64_t channel = 0; channel < x.size(0); ++channel) {
    auto* out = y.data_ptr<float>() + channel * y.size(1);
    at::parallel_for(0, y.size(1), kSampleGrain, [&](std::int64_t begin, std::int64_t end) {
      resampler.run(samples_of(x, channel), begin, {out + begin, static_cast<std::size_t>(end - begin)});
    });
  }
  return y;
}

at::Tensor log_mel(const at::Tensor& wave, const MelFrontend& frontend) {
  check(wave, frontend);
  const at::Tensor x = wave.contiguous();
  const std::vector<MelFilter> filters = filters_of(frontend);
  const at::Tensor window = at::hann_window(frontend.window, /*periodic=*/true, at::kFloat);
  const std::int64_t all = frontend.frames(x.size(1));
  at::Tensor mel = at::empty({x.size(0), all, frontend.mel_bins}, at::kFloat);
  at::Tensor cut = at::empty({std::min(kPiece, all), frontend.window}, at::kFloat);
  for (std::int64_t channel = 0; channel < x.size(0); ++channel) {
    for (std::int64_t first = 0; first < all; first += kPiece) {
      const std::int64_t count = std::min(kPiece, all - first);
      const at::Tensor frames = cut.narrow(0, 0, count);
      cut_frames(samples_of(x, channel), frontend, window, first, frames);
      weigh(at::view_as_real(at::fft_rfft(frames)), filters, mel[channel].narrow(0, first, count));
    }
  }
  return mel;
}

Bytes mel_memory(const MelFrontend& frontend, std::int64_t channels, std::int64_t samples,
                 std::int64_t from) {
  std::int64_t wave = 0, taps = 0;
  if (from != frontend.sample_rate) {
    const ResampleRatio ratio(from, frontend.sample_rate);
    samples = ratio.length(samples);
    wave = bytes_of_floats(channels * samples);
    taps = bytes_of_floats(ratio.weights());
  }
  const std::int64_t frames = frontend.frames(samples), piece = std::min(kPiece, frames);
  const std::int64_t spectrum = kParts * (frontend.window / 2 + 1);
  const std::int64_t mel = bytes_of_floats(channels * frames * frontend.mel_bins +
                                           piece * (frontend.window + spectrum) + frontend.window);
  return static_cast<Bytes>(wave + std::max(taps, mel));
}

}  // namespace sluice::ltx2
