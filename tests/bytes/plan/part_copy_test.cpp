#include "bytes/plan/part_copy.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace sluice::bytes {
namespace {

using ::testing::ElementsAre;

// Elements of one byte, copied as a whole to a target of zeros.
std::string copied(const Part& part, const std::vector<std::int64_t>& shape, const std::string& box) {
  std::string target(static_cast<std::size_t>(
                         std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())),
                     '.');
  copy_piece(part, {.dtype = part.source.dtype, .shape = shape}, 0, std::as_bytes(std::span(box)),
             std::as_writable_bytes(std::span(target)));
  return target;
}

TEST(CopyPiece, puts_rows_side_by_side) {
  const Part part{.source = {.dtype = Dtype::U8}, .box = {{0, 2}, {5, 2}}, .to_dim = {0, 1}, .at = {1, 1}};

  EXPECT_EQ(copied(part, {3, 4}, "abcd"),
            "....."
            "ab.."
            "cd.");
}

TEST(CopyPiece, turns_rows_to_columns) {
  const Part part{.source = {.dtype = Dtype::U8}, .box = {{0, 2}, {0, 3}}, .to_dim = {1, 0}, .at = {0, 0}};

  EXPECT_EQ(copied(part, {3, 2}, "abcdef"), "adbecf");
}

TEST(CopyPiece, of_a_scalar_is_one_element) {
  EXPECT_EQ(copied({.source = {.dtype = Dtype::U8}}, {}, "x"), "x");
}

TEST(CopyPiece, rounds_at_every_cast_on_the_way) {
  const Part part{.source = {.dtype = Dtype::F32},
                  .box = {{0, 2}},
                  .to_dim = {0},
                  .at = {0},
                  .casts = {Dtype::BF16, Dtype::F16, Dtype::F64}};
  const std::vector<float> from = {1.00390625f, 100000.0f};
  std::vector<float> to(2);

  copy_piece(part, {.dtype = Dtype::F32, .shape = {2}}, 0, std::as_bytes(std::span(from)),
             std::as_writable_bytes(std::span(to)));

  EXPECT_THAT(to, ElementsAre(1.0f, INFINITY));
}

TEST(CopyPiece, takes_elements_smaller_than_a_byte_by_bytes) {
  // Rows of four halves of a byte, into the right half of rows of eight.
  const Part part{.source = {.dtype = Dtype::F4, .shape = {2, 4}},
                  .box = {{0, 2}, {0, 4}},
                  .to_dim = {0, 1},
                  .at = {0, 4}};
  std::string target = "........";

  for (Bytes at : {0, 1, 2, 3}) {
    const std::string piece(1, static_cast<char>('a' + at));
    copy_piece(part, {.dtype = Dtype::F4, .shape = {2, 8}}, at, std::as_bytes(std::span(piece)),
               std::as_writable_bytes(std::span(target)));
  }

  EXPECT_EQ(target, "..ab..cd");
}

// One element after the other by its index.
void slow_copy(const Part& part, const TargetTensor& tensor, std::span<const std::byte> box,
               std::span<std::byte> target) {
  const std::size_t from_size = dtype_bits(part.source.dtype) / 8, to_size = dtype_bits(tensor.dtype) / 8;
  for (std::size_t element = 0; element < box.size() / from_size; ++element) {
    std::vector<std::int64_t> index = part.at;
    auto rest = static_cast<std::int64_t>(element);
    for (std::size_t d = part.box.size(); d-- > 0;) {
      index[part.to_dim[d]] += rest % part.box[d].extent;
      rest /= part.box[d].extent;
    }
    std::int64_t place = 0;
    for (std::size_t d = 0; d < index.size(); ++d) place = place * tensor.shape[d] + index[d];
    cast_elements(part.source.dtype, box.subspan(element * from_size, from_size), tensor.dtype,
                  target.subspan(static_cast<std::size_t>(place) * to_size, to_size));
  }
}

struct CopyCase {
  std::string name;
  std::vector<std::int64_t> box;
  std::vector<std::size_t> to_dim;
  std::vector<std::int64_t> at, shape;  // of the target
  Dtype from = Dtype::F32, to = Dtype::F32;
};

// Extents beyond the sizes in which the fast ways work: tiles of 64 by 64, blocks of 1024.
class LargeCopies : public ::testing::TestWithParam<CopyCase> {};
INSTANTIATE_TEST_SUITE_P(
    CopyPiece, LargeCopies,
    ::testing::Values(
        CopyCase{"straight", {70, 130}, {0, 1}, {0, 0}, {70, 130}},
        CopyCase{"into_columns", {70, 130}, {0, 1}, {2, 7}, {75, 150}},
        CopyCase{"cast_long_rows", {3, 3000}, {0, 1}, {0, 1}, {3, 3001}, Dtype::BF16, Dtype::F32},
        CopyCase{"turned", {130, 70}, {1, 0}, {0, 0}, {70, 130}},
        CopyCase{"turned_bytes", {130, 200}, {1, 0}, {1, 2}, {201, 133}, Dtype::U8, Dtype::U8},
        CopyCase{"turned_and_cast", {70, 130}, {1, 0}, {5, 0}, {140, 70}, Dtype::F32, Dtype::F16},
        CopyCase{"turned_wide", {65, 66}, {1, 0}, {0, 3}, {66, 70}, Dtype::I32, Dtype::I64},
        CopyCase{"outer_swapped", {6, 5, 40}, {1, 0, 2}, {0, 0, 0}, {5, 6, 40}},
        CopyCase{"ends_swapped", {9, 8, 70}, {2, 1, 0}, {0, 0, 0}, {70, 8, 9}},
        CopyCase{"inner_swapped", {3, 80, 70}, {0, 2, 1}, {0, 0, 0}, {3, 70, 80}},
        CopyCase{"rotated", {7, 70, 20}, {2, 0, 1}, {0, 0, 0}, {70, 20, 7}},
        CopyCase{"one_column_of_many", {2000, 1}, {0, 1}, {0, 1}, {2000, 3}}),
    [](const auto& info) { return info.param.name; });

TEST_P(LargeCopies, in_pieces_of_any_size_are_what_an_index_loop_gives) {
  const CopyCase& test = GetParam();
  Part part{.source = {.dtype = test.from, .shape = test.box}, .to_dim = test.to_dim, .at = test.at};
  for (std::int64_t extent : test.box) part.box.push_back({0, extent});
  const TargetTensor tensor{.dtype = test.to, .shape = test.shape};
  const std::size_t size = dtype_bits(test.from) / 8, elements = static_cast<std::size_t>(part.elements());
  std::size_t target_size = dtype_bits(test.to) / 8;
  for (std::int64_t extent : test.shape) target_size *= static_cast<std::size_t>(extent);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<std::byte> box(elements * size), expected(target_size), target(target_size);
  for (std::byte& byte : box) byte = static_cast<std::byte>(random());

  slow_copy(part, tensor, box, expected);
  std::uniform_int_distribution<std::size_t> length(1, elements / 3 + 1);
  for (std::size_t at = 0, count; at < elements; at += count) {
    count = std::min(length(random), elements - at);
    copy_piece(part, tensor, at * size, std::span(box).subspan(at * size, count * size), target);
  }

  EXPECT_EQ(target, expected);
}

}  // namespace
}  // namespace sluice::bytes
