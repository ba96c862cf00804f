#include "models/ltx2/vocoder/wave_rows.h"

#include <ATen/ATen.h>

namespace sluice::ltx2 {

WaveRows::WaveRows(const at::Tensor& memory, std::int64_t rows, std::int64_t channels, std::int64_t around)
    : rows_(rows),
      around_(around),
      all_(memory.narrow(0, 0, values(rows, channels, around)).view({-1, channels})) {
  all_.narrow(0, 0, around).zero_();
  all_.narrow(0, around + rows, around).zero_();
}

float* WaveRows::data() const {
  return all_.data_ptr<float>() + around_ * all_.size(1);
}

at::Tensor WaveRows::tensor() const {
  return all_.narrow(0, around_, rows_);
}

std::int64_t WaveRows::values(std::int64_t rows, std::int64_t channels, std::int64_t around) {
  return (rows + 2 * around) * channels;
}

}  // namespace sluice::ltx2
