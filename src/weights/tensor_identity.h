#pragma once
// Which tensors are one: the same view of the same memory, as tied parameters are under two names.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

namespace sluice::weights {

using TensorIdentity =
    std::tuple<std::string, const void*, std::vector<std::int64_t>, std::vector<std::int64_t>, bool, bool>;

inline TensorIdentity identity_of(const at::Tensor& tensor) {
  return {tensor.device().str(),  tensor.data_ptr(), tensor.sizes().vec(),
          tensor.strides().vec(), tensor.is_conj(),  tensor.is_neg()};
}

}  // namespace sluice::weights
