#include "kernels/weight_panels.h"

#include "kernels/widen.h"
#include "support/cpu_path_scope.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kFloat8_e4m3fn, at::kByte};

Matrix random_matrix(at::ScalarType dtype, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  if (dtype == at::kByte)
    return {at::randint(0, 256, {(count + 1) / 2, 1}, at::kByte), at::rand({(count + 63) / 64}), rows,
            columns};
  return {at::randn({rows, columns}).to(dtype)};
}

float value(float x) {
  return x;
}
float value(Bf16 x) {
  return static_cast<float>(at::BFloat16(x.bits, at::BFloat16::from_bits()));
}

// Every place of every panel: the value of its row and depth, zeros behind the last ones.
template <typename T>
void expect_panels(const Matrix& matrix, const WeightTile& tile) {
  constexpr std::int64_t kWord = kWordValues<T>;
  const std::int64_t panels = (tile.rows + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t words = (tile.depth + kWord - 1) / kWord;
  std::vector<T> packed(static_cast<std::size_t>(panels * WeightPanels<T>::panel_values(tile.depth)));
  std::vector<std::byte> side(static_cast<std::size_t>(WeightPanels<T>::kSideBytes));
  at::Tensor wide =
      at::empty({tile.rows, matrix.columns}, std::is_same_v<T, float> ? at::kFloat : at::kBFloat16);
  reference::widen_rows(matrix, tile.row, tile.row + tile.rows, wide);
  const at::Tensor floats = wide.to(at::kFloat);
  const auto expected = floats.accessor<float, 2>();

  WeightPanels<T>(matrix).pack(tile, side.data(), packed.data());

  for (std::int64_t panel = 0; panel < panels; ++panel) {
    const std::int64_t first = panel * kPanelColumns, columns = panel_columns(first, tile.rows);
    const T* values = packed.data() + panel * WeightPanels<T>::panel_values(tile.depth);
    for (std::int64_t k = 0; k < words * kWord; ++k) {
      for (std::int64_t column = 0; column < columns; ++column) {
        const bool inside = first + column < tile.rows && k < tile.depth;
        ASSERT_EQ(value(values[(k / kWord * columns + column) * kWord + k % kWord]),
                  inside ? expected[first + column][tile.from + k] : 0)
            << "panel " << panel << ", column " << column << ", value " << k;
      }
    }
  }
}

TEST(WeightPanels, hold_every_value_at_its_place_and_zeros_behind_the_last) {
  at::manual_seed(8);
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const at::ScalarType dtype : kDtypes) {
      SCOPED_TRACE(std::string(name(path)) + ", " + at::toString(dtype));
      const Matrix even = random_matrix(dtype, 90, 1302), odd = random_matrix(dtype, 90, 1301);
      for (const WeightTile& tile : {WeightTile{.row = 0, .rows = 64, .from = 0, .depth = 512},
                                     WeightTile{.row = 3, .rows = 50, .from = 4, .depth = 1040},
                                     WeightTile{.row = 89, .rows = 1, .from = 1300, .depth = 1},
                                     WeightTile{.row = 10, .rows = 33, .from = 2, .depth = 1299},
                                     WeightTile{.row = 40, .rows = 16, .from = 600, .depth = 38}}) {
        expect_panels<float>(odd, tile);
        expect_panels<Bf16>(odd, tile);
        if (tile.depth % 2 != 0) continue;
        expect_panels<float>(even, tile);
        expect_panels<Bf16>(even, tile);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
