#include "sampling/noise.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace sluice::sampling {

NoiseSource::NoiseSource(std::uint64_t seed) : generator_(at::detail::createCPUGenerator(seed)) {}

at::Tensor NoiseSource::draw(at::IntArrayRef shape) {
  return at::randn(shape, generator_, at::kFloat);
}

}  // namespace sluice::sampling
