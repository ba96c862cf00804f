#pragma once
// Tensors under the names that they have in a file or in a model.

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice::weights {

using NamedTensor = std::pair<std::string, at::Tensor>;
using NamedTensors = std::vector<NamedTensor>;  // in an order that matters
using TensorMap = std::map<std::string, at::Tensor, std::less<>>;

}  // namespace sluice::weights
