#include "kernels/smooth_snake.h"

#include <algorithm>
#include <cmath>

namespace sluice::kernels::reference {

// As the reference writes it: samples padded with copies of the ends, each weighted into the places that it
// reaches, and the places that are too many left out.
void snake_up(const SnakeFilters& filters, const float* x, std::int64_t rows, std::int64_t channels,
              float* to) {
  const auto kernel = static_cast<std::int64_t>(filters.up.size());
  const std::int64_t ratio = filters.ratio, pad = kernel / ratio - 1;
  const std::int64_t cut = pad * ratio + (kernel - ratio) / 2;
  std::fill_n(to, rows * ratio * channels, 0.0F);
  for (std::int64_t i = 0; i < rows + 2 * pad; ++i) {
    const float* sample = x + std::clamp<std::int64_t>(i - pad, 0, rows - 1) * channels;
    for (std::int64_t k = 0; k < kernel; ++k) {
      const std::int64_t place = i * ratio + k - cut;
      if (place < 0 || place >= rows * ratio) continue;
      const float weight = filters.up[static_cast<std::size_t>(k)] * static_cast<float>(ratio);
      for (std::int64_t c = 0; c < channels; ++c) to[place * channels + c] += weight * sample[c];
    }
  }
}

void snake(std::span<const float> frequency, std::span<const float> amplitude, float* x, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::size_t c = 0; c < frequency.size(); ++c, ++x) {
      const double sine = std::sin(static_cast<double>(*x * frequency[c]));
      *x += amplitude[c] * static_cast<float>(sine * sine);
    }
  }
}

void snake_down(const SnakeFilters& filters, const float* x, std::int64_t rows, std::int64_t channels,
                float* to) {
  const auto kernel = static_cast<std::int64_t>(filters.down.size());
  const std::int64_t before = kernel / 2 + kernel % 2 - 1;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (std::int64_t k = 0; k < kernel; ++k) {
        const std::int64_t place =
            std::clamp<std::int64_t>(row * filters.ratio + k - before, 0, rows * filters.ratio - 1);
        sum += filters.down[static_cast<std::size_t>(k)] * x[place * channels + c];
      }
      to[row * channels + c] = sum;
    }
  }
}

}  // namespace sluice::kernels::reference
