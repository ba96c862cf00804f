#pragma once
// Band-limited resampling by a ratio of whole numbers, as torchaudio's `resample` does it by default: a
// Hann-windowed sinc of six zero crossings, rolloff 0.99.  Taps are computed in f64 and kept in f32 (its own,
// computed in f32, are off by up to 4e-5); sums are f64.  Zeros lie around the wave.  Immutable: any thread.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace sluice::ltx2 {

// What two rates come to, from numbers alone.
struct ResampleRatio {
  ResampleRatio(std::int64_t from_rate, std::int64_t to_rate);  // samples a second, above 0

  // Samples that come out of so many: their duration, rounded up.
  std::int64_t length(std::int64_t samples) const { return (samples * to + from - 1) / from; }
  std::int64_t weights() const { return to * taps; }

  std::int64_t from, to;  // reduced
  double crossings;       // of zero, that the sinc has from one sample to the next
  std::int64_t taps;      // of each of `to` phases
};

class Resampler {
 public:
  explicit Resampler(const ResampleRatio& ratio);

  // Samples [first, first + y.size()) of what `wave` becomes: the same bits, whatever the range.
  void run(std::span<const float> wave, std::int64_t first, std::span<float> y) const;

 private:
  std::int64_t first_tap(std::int64_t phase) const;

  ResampleRatio ratio_;
  at::Tensor weights_;  // [phases, taps]
};

}  // namespace sluice::ltx2
