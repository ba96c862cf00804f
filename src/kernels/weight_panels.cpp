#include "kernels/weight_panels.h"

#include "kernels/pack.h"
#include "kernels/widen.h"

#include <algorithm>
#include <type_traits>

namespace sluice::kernels {
template <typename T>
WeightPanels<T>::WeightPanels(const Matrix& matrix)
    : stored_(stored_values(matrix)),
      in_(matrix.columns),
      in_place_(stored_.format == (std::is_same_v<T, float> ? Stored::f32 : Stored::bf16) &&
                in_ % kWord == 0) {}

template <typename T>
void WeightPanels<T>::pack(const WeightTile& tile, std::byte* side, T* to) const {
  for (std::int64_t row = 0; row < tile.rows; row += kPanelColumns) {
    const WeightTile panel{.row = tile.row + row,
                           .rows = std::min(kPanelColumns, tile.rows - row),
                           .from = tile.from,
                           .depth = tile.depth};
    pack_panel(panel, panel_columns(row, tile.rows), side, to);
    to += panel_values(tile.depth);
  }
}

template <typename T>
void WeightPanels<T>::pack_panel(const WeightTile& x, std::int64_t columns, std::byte* side, T* to) const {
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  auto* words = reinterpret_cast<std::byte*>(to);
  if (x.rows < columns) std::fill_n(words, (x.depth + kWord - 1) / kWord * columns * 4, std::byte{0});
  if (in_place_) {
    transpose_words({.from = stored_.values + (x.row * in_ + x.from) * kSize,
                     .stride = in_ * kSize,
                     .rows = x.rows,
                     .words = x.depth / kWord},
                    words, columns);
    return;
  }
  constexpr std::int64_t kStride = kSideValues * kSize;
  for (std::int64_t row = 0; row < x.rows; row += kSideRows) {
    const std::int64_t rows = std::min(kSideRows, x.rows - row);
    for (std::int64_t k = 0; k < x.depth; k += kSideValues) {
      const std::int64_t count = std::min(kSideValues, x.depth - k);
      for (std::int64_t i = 0; i < rows; ++i) {
        T* values = reinterpret_cast<T*>(side + i * kStride);
        widen_values(stored_, (x.row + row + i) * in_ + x.from + k, count, values);
        if (count % kWord != 0) values[count] = T{};
      }
      transpose_words({.from = side, .stride = kStride, .rows = rows, .words = (count + kWord - 1) / kWord},
                      words + 4 * (k / kWord * columns + row), columns);
    }
  }
}

template class WeightPanels<float>;
template class WeightPanels<Bf16>;

}  // namespace sluice::kernels
