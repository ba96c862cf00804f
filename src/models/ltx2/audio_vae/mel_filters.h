#pragma once
// Triangles over a spectrum's frequencies, equally spaced on Slaney's mel scale and of Slaney's norm: each
// has an area of 1 / 2 over its width in Hz.  Numbers only.

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct MelFilter {
  std::int64_t first = 0;      // frequency
  std::vector<float> weights;  // of the frequencies from there on; the rest have none
};

struct MelScale {
  std::int64_t sample_rate = 0;
  std::int64_t window = 0;  // samples; window / 2 + 1 frequencies, from 0 to half the rate
  std::int64_t bins = 0;
  double lowest = 0;  // Hz
  double highest = 0;
};

double to_mel(double hertz);
double to_hertz(double mel);

std::vector<MelFilter> mel_filters(const MelScale& scale);

}  // namespace sluice::ltx2
