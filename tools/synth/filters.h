#pragma once
// Fixed tensors of the vocoder: filters of its antialiasing and the bases of its inner mel spectrogram.

#include <cstdint>
#include <vector>

namespace sluice::synth {

// A half-band low pass, sinc under a Hann window, sum 1.
std::vector<float> low_pass_filter(std::int64_t taps);

// [2 (length / 2 + 1), 1, length]: cosine rows, then negative sine rows, under a periodic Hann window.
std::vector<float> fourier_basis(std::int64_t length);

// [bins, frequencies]: triangles with evenly spaced middles, each with sum 1.
std::vector<float> mel_basis(std::int64_t bins, std::int64_t frequencies);

}  // namespace sluice::synth
