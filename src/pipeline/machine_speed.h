#pragma once
// How fast this machine is right now at what a run consists of, by computing and reading a little of each
// with the same kernels and the same file: less than half a second, a few tens of megabytes.

#include "kernels/matrix.h"

#include <sluice/checkpoint.h>
#include <sluice/read_options.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace sluice::pipeline {

class MachineSpeed {
 public:
  // dtype: of the computation, f32 or bf16.
  explicit MachineSpeed(at::ScalarType dtype) : dtype_(dtype) {}

  // Seconds of y = x · Wᵀ for one weight element, with `rows` rows of x; measured once for each class of
  // rows.
  double linear(std::int64_t rows, kernels::MatrixFormat format);
  // Seconds of one multiplication and addition of softmax(q kᵀ) v, over `tokens` x `keys` pairs.
  double attention();
  // Seconds of one multiplication and addition of a 3 x 3 x 3 convolution, or of one along time.
  double conv3d();
  double conv1d();
  // Seconds of a byte read and written by an elementwise operation on large tensors.
  double stream();
  // Seconds of a byte read from the largest file of the checkpoint, as a staged component is read.
  double read(const Checkpoint& checkpoint, const ReadOptions& options);

 private:
  at::ScalarType dtype_;
  std::map<std::pair<std::int64_t, kernels::MatrixFormat>, double> linear_;  // rows, rounded up
  std::map<std::string, double> read_;                                       // by path
  double attention_ = 0, conv3d_ = 0, conv1d_ = 0, stream_ = 0;              // 0: not measured yet
};

}  // namespace sluice::pipeline
