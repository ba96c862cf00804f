#pragma once
// Between the dtypes of files and those of LibTorch.

#include <sluice/checkpoint.h>

#include <ATen/core/Tensor.h>

namespace sluice::weights {

at::ScalarType to_scalar_type(Dtype dtype);   // Error(bad_input) for types LibTorch has no tensor of
bool can_compute_with(Dtype dtype);           // as plain values: BF16, F16, F32
bool has_file_dtype(at::ScalarType type);     // whether safetensors can hold it
Dtype from_scalar_type(at::ScalarType type);  // Error(internal) for types safetensors cannot hold

}  // namespace sluice::weights
