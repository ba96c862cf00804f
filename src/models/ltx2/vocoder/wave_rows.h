#pragma once
// A tensor of a generator: a clip's channels-last rows in f32, and rows of zeros around them where a
// convolution looks beyond its ends.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

class WaveRows {
 public:
  WaveRows() = default;
  // In `memory`, f32 of any shape with at least so many values; any content.  `around`: rows of zeros on
  // either side.
  WaveRows(const at::Tensor& memory, std::int64_t rows, std::int64_t channels, std::int64_t around = 0);

  std::int64_t rows() const { return rows_; }
  std::int64_t channels() const { return all_.size(1); }
  float* data() const;        // row 0
  at::Tensor tensor() const;  // [rows, channels], a view

  static std::int64_t values(std::int64_t rows, std::int64_t channels, std::int64_t around = 0);

 private:
  std::int64_t rows_ = 0, around_ = 0;
  at::Tensor all_;  // [around + rows + around, channels]
};

}  // namespace sluice::ltx2
