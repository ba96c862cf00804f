#include "kernels/scratch.h"

#include <ATen/ATen.h>
#include <c10/util/accumulate.h>

namespace sluice::kernels {
namespace {

thread_local at::Tensor block;  // bytes

}  // namespace

at::Tensor scratch(at::IntArrayRef shape, at::ScalarType dtype) {
  std::int64_t bytes = c10::multiply_integers(shape) * static_cast<std::int64_t>(c10::elementSize(dtype));
  if (!block.defined() || block.numel() < bytes) {
    block = at::Tensor();  // the old block first, so that both never exist at once
    block = at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
  }
  return block.narrow(0, 0, bytes).view(dtype).view(shape);
}

void release_scratch() {
  block = at::Tensor();
}

}  // namespace sluice::kernels
