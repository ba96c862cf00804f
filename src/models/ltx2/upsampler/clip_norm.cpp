#include "models/ltx2/upsampler/clip_norm.h"

#include "kernels/plain_value.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <vector>

// Plain loops: the convolution before a norm does some 27 · channels products where this has ten operations.

namespace sluice::ltx2 {
namespace {

using kernels::reference::plain_value;
using kernels::reference::round_to;

constexpr std::int64_t kGroups = 32;
constexpr double kEps = 1e-5;
constexpr std::int64_t kBlock = 512;  // positions whose sums are made at once, by one thread

template <typename T>
struct Positions {
  T* values = nullptr;
  const T* skip = nullptr;  // or none
  std::int64_t count = 0, channels = 0;

  std::int64_t blocks() const { return (count + kBlock - 1) / kBlock; }
  std::int64_t end_of(std::int64_t block) const { return std::min((block + 1) * kBlock, count); }
};

// x · gain + shift, of each channel; f64, since both may be large where values hardly differ.
struct Affine {
  std::vector<double> gain, shift;
};

// Of each channel [values, squares], summed up over blocks in their order.
template <typename T>
std::vector<double> channel_sums(const Positions<T>& x) {
  const auto row = static_cast<std::size_t>(2 * x.channels);
  std::vector<double> of_blocks(static_cast<std::size_t>(x.blocks()) * row, 0.0);
  at::parallel_for(0, x.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      double* sums = of_blocks.data() + static_cast<std::size_t>(block) * row;
      for (std::int64_t i = block * kBlock; i < x.end_of(block); ++i) {
        for (std::int64_t c = 0; c < x.channels; ++c) {
          const double value = plain_value(x.values[i * x.channels + c]);
          sums[c] += value;
          sums[x.channels + c] += value * value;
        }
      }
    }
  });
  std::vector<double> sums(row, 0.0);
  for (std::size_t i = 0; i < of_blocks.size(); ++i) sums[i % row] += of_blocks[i];
  return sums;
}

template <typename T>
Affine affine_of(const GroupNorm& norm, const Positions<T>& x) {
  const at::Tensor weight = norm.weight.to(at::kFloat).contiguous(),
                   bias = norm.bias.to(at::kFloat).contiguous();
  const std::vector<double> sums = channel_sums(x);
  const std::int64_t width = x.channels / kGroups;  // channels of a group
  const double count = static_cast<double>(x.count * width);
  Affine affine;
  for (std::int64_t group = 0; group < kGroups; ++group) {
    double sum = 0, squares = 0;
    for (std::int64_t c = group * width; c < (group + 1) * width; ++c) {
      sum += sums[static_cast<std::size_t>(c)];
      squares += sums[static_cast<std::size_t>(x.channels + c)];
    }
    const double mean = sum / count;
    const double deviation = std::sqrt(std::max(squares / count - mean * mean, 0.0) + kEps);
    for (std::int64_t c = group * width; c < (group + 1) * width; ++c) {
      const double gain = weight.const_data_ptr<float>()[c] / deviation;
      affine.gain.push_back(gain);
      affine.shift.push_back(bias.const_data_ptr<float>()[c] - mean * gain);
    }
  }
  return affine;
}

template <typename T>
void apply(const Affine& affine, const Positions<T>& x) {
  at::parallel_for(0, x.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin * kBlock; i < x.end_of(end - 1); ++i) {
      for (std::int64_t c = 0; c < x.channels; ++c) {
        const auto channel = static_cast<std::size_t>(c);
        T& value = x.values[i * x.channels + c];
        auto y = static_cast<float>(plain_value(value) * affine.gain[channel] + affine.shift[channel]);
        if (x.skip) y += plain_value(x.skip[i * x.channels + c]);
        round_to(y / (1 + std::exp(-y)), value);
      }
    }
  });
}

template <typename T>
void norm_spans(const GroupNorm& norm, const at::Tensor& clip, NormSpan span, const at::Tensor& skip) {
  const std::int64_t spans = span == NormSpan::clip ? 1 : clip.size(0), values = clip.numel() / spans;
  for (std::int64_t i = 0; i < spans; ++i) {
    Positions<T> x{.values = static_cast<T*>(clip.data_ptr()) + i * values,
                   .count = values / clip.size(3),
                   .channels = clip.size(3)};
    if (skip.defined()) x.skip = static_cast<const T*>(skip.const_data_ptr()) + i * values;
    apply(affine_of(norm, x), x);
  }
}

}  // namespace

void norm_silu(const GroupNorm& norm, const at::Tensor& clip, NormSpan span, const at::Tensor& skip) {
  clip.scalar_type() == at::kFloat ? norm_spans<float>(norm, clip, span, skip)
                                   : norm_spans<kernels::Bf16>(norm, clip, span, skip);
}

}  // namespace sluice::ltx2
