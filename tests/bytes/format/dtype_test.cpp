#include "bytes/format/dtype.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace sluice::bytes {
namespace {

std::optional<Bytes> size_of(Dtype dtype, std::vector<std::int64_t> shape) {
  return checked_size(dtype, shape);
}

TEST(Dtype, is_found_by_the_name_it_has_in_a_header) {
  for (int i = 0; i <= static_cast<int>(Dtype::U64); ++i) {
    auto dtype = static_cast<Dtype>(i);
    EXPECT_EQ(find_dtype(dtype_name(dtype)), dtype) << dtype_name(dtype);
  }
  EXPECT_EQ(find_dtype("F31"), std::nullopt);
  EXPECT_EQ(find_dtype("bf16"), std::nullopt);
}

TEST(CheckedSize, multiplies_shape_and_width) {
  EXPECT_EQ(size_of(Dtype::F32, {}), 4u);
  EXPECT_EQ(size_of(Dtype::BF16, {3, 5}), 30u);
  EXPECT_EQ(size_of(Dtype::C64, {2}), 16u);
  EXPECT_EQ(size_of(Dtype::F8_E4M3, {7}), 7u);
  EXPECT_EQ(size_of(Dtype::F64, {4, 0, 9}), 0u);
}

TEST(CheckedSize, wants_whole_bytes_of_narrow_elements) {
  EXPECT_EQ(size_of(Dtype::F4, {2}), 1u);
  EXPECT_EQ(size_of(Dtype::F4, {3}), std::nullopt);
  EXPECT_EQ(size_of(Dtype::F6_E2M3, {4}), 3u);
  EXPECT_EQ(size_of(Dtype::F6_E2M3, {2}), std::nullopt);
}

TEST(CheckedSize, does_not_wrap_around) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(size_of(Dtype::U8, {std::int64_t{1} << 32, std::int64_t{1} << 32}), std::nullopt);
  EXPECT_EQ(size_of(Dtype::U8, {kMost}), std::nullopt);  // more than 2^64 bits
  EXPECT_EQ(size_of(Dtype::F4, {std::int64_t{1} << 61}), Bytes{1} << 60);
  EXPECT_EQ(size_of(Dtype::U64, {std::int64_t{1} << 58}), std::nullopt);
  EXPECT_EQ(size_of(Dtype::F32, {-1}), std::nullopt);
}

TEST(FormatShape, shows_a_scalar_as_empty_brackets) {
  EXPECT_EQ(format_shape({}), "[]");
  EXPECT_EQ(format_shape(std::vector<std::int64_t>{4096, 128}), "[4096, 128]");
}

}  // namespace
}  // namespace sluice::bytes
