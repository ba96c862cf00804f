#pragma once
// From a waveform to the log-mel spectrogram that the audio autoencoder encodes.  Source: the preprocessing
// of the official package, whose parameters stand in the checkpoint's metadata; resampling as torchaudio's
// `resample` (windowed sinc, Hann, width 6, rolloff 0.99) with taps computed in f64.

#include "models/ltx2/audio_vae/config.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct MelFrontend {
  std::int64_t sample_rate = 16000;
  std::int64_t window = 1024;  // samples, and the size of the transform
  std::int64_t hop = 160;
  std::int64_t mel_bins = 64;
  double lowest = 0;  // Hz
  double highest = 8000;

  std::int64_t frames(std::int64_t samples) const { return 1 + samples / hop; }
};

// What a checkpoint's audio autoencoder wants.
MelFrontend mel_frontend_of(const AudioVaeConfig& config);

// wave: f32 [channels, samples] at rate `from` -> [channels, ceil(samples · to / from)]; in pieces, whose
// size changes nothing.
at::Tensor resample_wave(const at::Tensor& wave, std::int64_t from, std::int64_t to);

// wave: f32 [channels, samples] at the front end's rate -> ln(max(mel, 1e-5)), [channels, frames, mel_bins].
// Error(internal) for fewer samples than the reflected border needs (half a window and one).
at::Tensor log_mel(const at::Tensor& wave, const MelFrontend& frontend);

// What both take at most, with their results, for so many samples at `from`.
Bytes mel_memory(const MelFrontend& frontend, std::int64_t channels, std::int64_t samples, std::int64_t from);

}  // namespace sluice::ltx2
