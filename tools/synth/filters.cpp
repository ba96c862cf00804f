#include "synth/filters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice::synth {
namespace {

constexpr double kPi = std::numbers::pi;

double hann(std::int64_t index, std::int64_t period) {
  return 0.5 - 0.5 * std::cos(2 * kPi * static_cast<double>(index) / static_cast<double>(period));
}

void normalize_sum(std::vector<float>& values, std::size_t begin, std::size_t end) {
  double sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += values[i];
  for (std::size_t i = begin; i < end; ++i) values[i] = static_cast<float>(values[i] / sum);
}

}  // namespace

std::vector<float> low_pass_filter(std::int64_t taps) {
  std::vector<float> filter;
  for (std::int64_t i = 0; i < taps; ++i) {
    const double x = (static_cast<double>(i) - static_cast<double>(taps - 1) / 2) / 2;
    const double sinc = x == 0 ? 1 : std::sin(kPi * x) / (kPi * x);
    filter.push_back(static_cast<float>(sinc * hann(i + 1, taps + 1)));
  }
  normalize_sum(filter, 0, filter.size());
  return filter;
}

std::vector<float> fourier_basis(std::int64_t length) {
  std::vector<float> basis;
  for (const bool imaginary : {false, true}) {
    for (std::int64_t k = 0; k <= length / 2; ++k) {
      for (std::int64_t n = 0; n < length; ++n) {
        const double angle = 2 * kPi * static_cast<double>(k * n % length) / static_cast<double>(length);
        basis.push_back(
            static_cast<float>(hann(n, length) * (imaginary ? -std::sin(angle) : std::cos(angle))));
      }
    }
  }
  return basis;
}

std::vector<float> mel_basis(std::int64_t bins, std::int64_t frequencies) {
  std::vector<float> basis;
  const double step = static_cast<double>(frequencies) / static_cast<double>(bins + 1);
  const double width = std::max(step, 1.0);  // a triangle reaches at least one frequency
  for (std::int64_t bin = 0; bin < bins; ++bin) {
    const std::size_t begin = basis.size();
    const double middle = std::round(step * static_cast<double>(bin + 1));
    for (std::int64_t k = 0; k < frequencies; ++k)
      basis.push_back(
          static_cast<float>(std::max(0.0, 1 - std::abs(static_cast<double>(k) - middle) / width)));
    normalize_sum(basis, begin, basis.size());
  }
  return basis;
}

}  // namespace sluice::synth
