#pragma once
// Random noise: PyTorch's CPU generator (Mersenne Twister) on every device, so that a seed means here what it
// means for the reference pipelines.  Numbers are f32, standard normal.  PyTorch has two ways to make them:
// below 16 elements one by one, from 16 on in blocks; the block way uses vector instructions where the CPU
// has them, so that other CPUs may differ in the last bit, as with PyTorch itself.

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::sampling {

// One stream of random numbers; each draw continues where the last one ended.  One thread at a time.
class NoiseSource {
 public:
  explicit NoiseSource(std::uint64_t seed);  // as torch.Generator().manual_seed(seed)

  at::Tensor draw(at::IntArrayRef shape);  // f32

 private:
  at::Generator generator_;
};

}  // namespace sluice::sampling
