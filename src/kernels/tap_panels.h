#pragma once
// Weights of a convolution packed as MicroProduct takes them: a panel holds up to 32 output channels, a
// segment is a tap.  What is stored in another dtype is widened on the way, in cache; nothing is kept.

#include "kernels/micro_product.h"
#include "kernels/widen_values.h"

#include <cstdint>
#include <span>

namespace sluice::kernels {

struct TapWeights {
  StoredValues values;  // transposed ? [in][out][taps] : [out][in][taps]; f32, bf16 or f16, any address
  std::int64_t out = 0, in = 0, taps = 0;
  bool transposed = false;  // of a transposed convolution
};

// Values of the panel that holds output channels from `first` on: taps · padded in · columns, where in is
// padded with zeros to a multiple of kWordValues<T> and columns = panel_columns(first, out).
template <typename T>
std::int64_t tap_panel_values(const TapWeights& weights, std::int64_t first);

// [tap][in / kWordValues][columns][kWordValues]; columns behind the last channel hold zeros.  `taps`: the
// taps that are wanted, in the order of the segments; empty: all.
template <typename T>
void pack_tap_panel(const TapWeights& weights, std::int64_t first, std::span<const std::int64_t> taps, T* to);

namespace reference {
template <typename T>
void pack_tap_panel(const TapWeights& weights, std::int64_t first, std::span<const std::int64_t> taps, T* to);
}  // namespace reference

}  // namespace sluice::kernels
