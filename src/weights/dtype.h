#pragma once
// Between the dtypes of files and those of LibTorch.

#include <sluice/checkpoint.h>

#include <ATen/core/Tensor.h>

namespace sluice::weights {

at::ScalarType to_scalar_type(Dtype dtype);   // Error(bad_input) for types LibTorch has no tensor of
Dtype from_scalar_type(at::ScalarType type);  // Error(internal) for types safetensors cannot hold

}  // namespace sluice::weights
