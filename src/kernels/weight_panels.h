#pragma once
// Tiles of a weight matrix in panels of 32 of its rows, as MicroProduct takes them: widened on the way, from
// where they lie.

#include "kernels/matrix.h"
#include "kernels/micro_product.h"
#include "kernels/widen_values.h"

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {

struct WeightTile {
  std::int64_t row = 0, rows = 0;    // of the matrix: outputs of the layer
  std::int64_t from = 0, depth = 0;  // values of each row: from an even one on
};

template <typename T>  // float or Bf16
class WeightPanels {
 public:
  // Rows that are widened side by side before they are packed, and values of each: 16 KiB, in a first-level
  // cache.
  static constexpr std::int64_t kSideRows = kLanes;
  static constexpr std::int64_t kSideValues = 1024 / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kSideBytes = kSideRows * 1024;

  explicit WeightPanels(const Matrix& matrix);  // looks into its tensors

  // Panels one after the other, [panel][depth / kWordValues][panel_columns()][kWordValues], depth filled up
  // with a zero where it is odd; `side`: scratch of kSideBytes.
  void pack(const WeightTile& tile, std::byte* side, T* to) const;

  // Values of one panel of full width.
  static std::int64_t panel_values(std::int64_t depth) {
    return (depth + kWord - 1) / kWord * kWord * kPanelColumns;
  }

 private:
  static constexpr std::int64_t kWord = kWordValues<T>;

  void pack_panel(const WeightTile& panel, std::int64_t columns, std::byte* side, T* to) const;

  StoredValues stored_;
  std::int64_t in_;
  bool in_place_;  // packed without being widened: stored as T, in whole words
};

}  // namespace sluice::kernels
