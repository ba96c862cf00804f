#pragma once
// Values that are no numbers: NaN and infinity, counted in the formats of safetensors as they lie in a file.

#include <sluice/checkpoint.h>

#include <cstdint>
#include <span>

namespace sluice::bytes {

struct NonFinite {
  std::uint64_t nan = 0, infinite = 0;

  std::uint64_t total() const { return nan + infinite; }
  NonFinite& operator+=(const NonFinite& more) {
    nan += more.nan;
    infinite += more.infinite;
    return *this;
  }
  bool operator==(const NonFinite&) const = default;
};

// Bytes of the smallest run of a tensor that can be judged by itself: those of an element, of one of its two
// parts for C64, 1 for formats below a byte (F4, F6), all of whose values are finite, as those of integers.
Bytes judged_size(Dtype dtype);

// `values`: a multiple of judged_size(), at any address.
NonFinite count_non_finite(Dtype dtype, std::span<const std::byte> values);

}  // namespace sluice::bytes
