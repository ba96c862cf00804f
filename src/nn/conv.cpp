#include "nn/conv.h"

namespace sluice::nn {
namespace {

std::vector<std::int64_t> weight_shape(std::int64_t first, std::int64_t second,
                                       const std::vector<std::int64_t>& kernel) {
  std::vector<std::int64_t> shape = {first, second};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  return shape;
}

}  // namespace

void declare(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape) {
  scope.add("weight", layer.weight, weight_shape(shape.out, shape.in, shape.kernel));
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out});
}

void declare_transposed(const weights::ParameterScope& scope, Conv& layer, const ConvShape& shape) {
  scope.add("weight", layer.weight, weight_shape(shape.in, shape.out, shape.kernel));
  if (shape.bias == Bias::yes) scope.add("bias", layer.bias, {shape.out});
}

}  // namespace sluice::nn
