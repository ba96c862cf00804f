#include "kernels/group_norm.h"

#include "kernels/lanes_exp.h"
#include "kernels/plain_value.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kBlock = 512;  // positions whose sums are made at once, by one thread

using WideLanes = double __attribute__((vector_size(8 * kLanes)));

std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

// Of each channel.  A mean is two floats, so that x - high - low keeps its digits where values hardly differ.
struct Affine {
  std::vector<float> high, low, gain, bias;
};

template <typename T>
struct Rows {               // neighbouring positions
  T* values = nullptr;      // [count][channels]
  const T* skip = nullptr;  // or none
  std::int64_t count = 0, channels = 0;
  double* sums = nullptr;  // [2][channels]: of values, of squares; added to
  const Affine* affine = nullptr;
};

SLUICE_INLINE void add(const WideLanes& x, double* to) {
  WideLanes sum;
  std::memcpy(&sum, to, sizeof sum);
  sum += x;
  std::memcpy(to, &sum, sizeof sum);
}

template <typename T>
SLUICE_INLINE void sum_rows(const Rows<T>& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    for (std::int64_t c = 0; c < rows.channels; c += kLanes) {
      Lanes x;
      load(rows.values + i * rows.channels + c, x);
      const WideLanes wide = __builtin_convertvector(x, WideLanes);
      add(wide, rows.sums + c);
      add(wide * wide, rows.sums + rows.channels + c);
    }
  }
}

// silu without a large exponent for either sign.
SLUICE_INLINE void silu(Lanes& x) {
  const Lanes zero = {};
  Lanes e = x > zero ? -x : x;
  exp_in_place(e);
  x = (x > zero ? x : x * e) / (1.0F + e);
}

template <typename T>
SLUICE_INLINE void norm_rows_any(const Rows<T>& rows) {
  for (std::int64_t i = 0; i < rows.count; ++i) {
    for (std::int64_t c = 0; c < rows.channels; c += kLanes) {
      const std::int64_t at = i * rows.channels + c;
      Lanes x, high, low, gain, bias, skip = {};
      load(rows.values + at, x);
      load(rows.affine->high.data() + c, high);
      load(rows.affine->low.data() + c, low);
      load(rows.affine->gain.data() + c, gain);
      load(rows.affine->bias.data() + c, bias);
      if (rows.skip) load(rows.skip + at, skip);
      x = (x - high - low) * gain + bias + skip;
      silu(x);
      store(x, rows.values + at);
    }
  }
}

SLUICE_INLINE void sum_f32_body(const Rows<float>& rows) {
  sum_rows(rows);
}
SLUICE_INLINE void sum_bf16_body(const Rows<Bf16>& rows) {
  sum_rows(rows);
}
SLUICE_INLINE void norm_f32_body(const Rows<float>& rows) {
  norm_rows_any(rows);
}
SLUICE_INLINE void norm_bf16_body(const Rows<Bf16>& rows) {
  norm_rows_any(rows);
}
SLUICE_COMPILE(void, sum_f32, (const Rows<float>& rows), (rows))
SLUICE_COMPILE(void, sum_bf16, (const Rows<Bf16>& rows), (rows))
SLUICE_COMPILE(void, norm_f32, (const Rows<float>& rows), (rows))
SLUICE_COMPILE(void, norm_bf16, (const Rows<Bf16>& rows), (rows))

void sum(const Rows<float>& rows) {
  best_of(k_sum_f32)(rows);
}
void sum(const Rows<Bf16>& rows) {
  best_of(k_sum_bf16)(rows);
}
void norm(const Rows<float>& rows) {
  best_of(k_norm_f32)(rows);
}
void norm(const Rows<Bf16>& rows) {
  best_of(k_norm_bf16)(rows);
}

// work(block, its rows)
template <typename T, typename Work>
void each_block(const NormedPositions<T>& x, const Work& work) {
  at::parallel_for(0, (x.count + kBlock - 1) / kBlock, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t first = block * kBlock;
      work(block, Rows<T>{.values = x.values + first * x.channels,
                          .skip = x.skip ? x.skip + first * x.channels : nullptr,
                          .count = std::min(kBlock, x.count - first),
                          .channels = x.channels});
    }
  });
}

// [2][channels]; blocks are added up in their order.
template <typename T>
std::vector<double> channel_sums(const NormedPositions<T>& x) {
  const std::size_t row = size(2 * x.channels);
  std::vector<double> of_blocks(size((x.count + kBlock - 1) / kBlock) * row, 0.0);
  each_block(x, [&](std::int64_t block, Rows<T> rows) {
    rows.sums = of_blocks.data() + size(block) * row;
    sum(rows);
  });
  std::vector<double> sums(row, 0.0);
  for (std::size_t i = 0; i < of_blocks.size(); ++i) sums[i % row] += of_blocks[i];
  return sums;
}

struct GroupStatistics {
  double mean = 0, deviation = 0;  // with eps
};

GroupStatistics statistics_of(double sum, double squares, double count, double eps) {
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(squares / count - mean * mean, 0.0) + eps)};
}

Affine affine_of(const std::vector<double>& sums, const GroupNormWeights& weights, std::int64_t positions) {
  const std::size_t channels = sums.size() / 2, width = channels / size(weights.groups);
  Affine affine;
  for (std::size_t first = 0; first < channels; first += width) {
    double sum = 0, squares = 0;
    for (std::size_t c = first; c < first + width; ++c) sum += sums[c], squares += sums[channels + c];
    const GroupStatistics group =
        statistics_of(sum, squares, static_cast<double>(positions) * static_cast<double>(width), weights.eps);
    const auto high = static_cast<float>(group.mean);
    for (std::size_t c = first; c < first + width; ++c) {
      affine.high.push_back(high);
      affine.low.push_back(static_cast<float>(group.mean - high));
      affine.gain.push_back(static_cast<float>(weights.weight[c] / group.deviation));
      affine.bias.push_back(weights.bias[c]);
    }
  }
  return affine;
}

}  // namespace

template <typename T>
void group_norm_silu(const NormedPositions<T>& x, const GroupNormWeights& weights) {
  const Affine affine = affine_of(channel_sums(x), weights, x.count);
  each_block(x, [&](std::int64_t, Rows<T> rows) {
    rows.affine = &affine;
    norm(rows);
  });
}

namespace reference {

template <typename T>
void group_norm_silu(const NormedPositions<T>& x, const GroupNormWeights& weights) {
  const std::int64_t width = x.channels / weights.groups;
  for (std::int64_t first = 0; first < x.channels; first += width) {
    double sum = 0, squares = 0;
    for (std::int64_t i = 0; i < x.count; ++i) {
      for (std::int64_t c = first; c < first + width; ++c) {
        const double value = plain_value(x.values[i * x.channels + c]);
        sum += value;
        squares += value * value;
      }
    }
    const GroupStatistics group =
        statistics_of(sum, squares, static_cast<double>(x.count * width), weights.eps);
    for (std::int64_t i = 0; i < x.count; ++i) {
      for (std::int64_t c = first; c < first + width; ++c) {
        T& value = x.values[i * x.channels + c];
        double y = (plain_value(value) - group.mean) / group.deviation * weights.weight[c] + weights.bias[c];
        if (x.skip) y += plain_value(x.skip[i * x.channels + c]);
        round_to(static_cast<float>(y / (1 + std::exp(-y))), value);
      }
    }
  }
}

template void group_norm_silu(const NormedPositions<float>&, const GroupNormWeights&);
template void group_norm_silu(const NormedPositions<Bf16>&, const GroupNormWeights&);

}  // namespace reference

template void group_norm_silu(const NormedPositions<float>&, const GroupNormWeights&);
template void group_norm_silu(const NormedPositions<Bf16>&, const GroupNormWeights&);

}  // namespace sluice::kernels
