#pragma once
// Arithmetic on element types and shapes that come from a file, so nothing about them is believed.

#include <sluice/checkpoint.h>

#include <optional>
#include <span>
#include <string_view>

namespace sluice::bytes {

std::optional<Dtype> find_dtype(std::string_view name);

// Bytes of a tensor; nullopt if an extent is negative, if a product (also in bits, as the format demands)
// exceeds 64 bits, or if elements below a byte do not fill whole bytes.
std::optional<Bytes> checked_size(Dtype dtype, std::span<const std::int64_t> shape);

}  // namespace sluice::bytes
