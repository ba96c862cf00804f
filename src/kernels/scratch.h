#pragma once
// One reused block of host memory a thread, for operands that live only until the next use: widened weight
// tiles. Fresh memory costs more to touch than the arithmetic on it saves, so the block only grows and is
// kept.

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::kernels {

// A contiguous tensor of this shape in the calling thread's block.  Valid until the next call on this thread.
at::Tensor scratch(at::IntArrayRef shape, at::ScalarType dtype);

// Gives the calling thread's block back to the system (at the end of a phase).
void release_scratch();

}  // namespace sluice::kernels
