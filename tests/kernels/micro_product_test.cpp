#include "kernels/micro_product.h"

#include "support/cpu_path_scope.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

void set(float& to, float value) {
  to = value;
}
void set(Bf16& to, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  to.bits = static_cast<std::uint16_t>(bits >> 16);
}

template <typename T>
class Case {  // a product of random values, and its operands, at addresses that are not aligned to vectors
 public:
  Case(std::int64_t rows, std::int64_t columns, std::int64_t segments, std::int64_t depth, unsigned seed)
      : rows_(rows),
        random_(seed),
        a_stride_(depth + 2),
        a_(static_cast<std::size_t>(1 + (rows + segments) * a_stride_)),
        b_(static_cast<std::size_t>(1 + segments * depth * columns)),
        c_(static_cast<std::size_t>(1 + rows * (columns + 3)), 0.25F) {
    fill(a_);
    fill(b_);
    for (std::int64_t s = 0; s < segments; ++s) offsets_.push_back((segments - 1 - s) * a_stride_);
    product_ = {.a = a_.data() + 1,
                .a_stride = a_stride_,
                .segments = offsets_.data(),
                .segment_count = segments,
                .depth = depth,
                .b = b_.data() + 1,
                .columns = columns,
                .c_stride = columns + 3};
  }

  void use_rows(std::int64_t rows) { rows_ = rows; }
  T& a(std::int64_t row, std::int64_t k) { return a_[static_cast<std::size_t>(1 + row * a_stride_ + k)]; }

  template <typename Multiply>
  std::vector<float> result(const Multiply& multiply, bool add) {
    std::vector<float> c = c_;
    product_.c = c.data() + 1;
    product_.add = add;
    multiply(product_, rows_);
    return c;
  }
  std::vector<float> expected(bool add) {
    return result([](const auto& product, std::int64_t rows) { reference::multiply(product, rows); }, add);
  }
  std::vector<float> actual(bool add) {
    return result([](const auto& product, std::int64_t rows) { multiply(product, rows); }, add);
  }

 private:
  void fill(std::vector<T>& values) {
    std::uniform_real_distribution<float> value(-1, 1);
    for (T& x : values) set(x, value(random_));
  }

  std::int64_t rows_;
  std::mt19937 random_;
  std::int64_t a_stride_;
  std::vector<T> a_, b_;
  std::vector<float> c_;
  std::vector<std::int64_t> offsets_;
  MicroProduct<T> product_;
};

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, double most) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], most) << "at " << i;
}

template <typename T>
class MicroProductTest : public ::testing::Test {};
using Values = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(MicroProductTest, Values);

TYPED_TEST(MicroProductTest, equals_the_plain_twin_on_every_path_whatever_the_sizes) {
  unsigned seed = 1;
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const std::int64_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 25, 31, 64}) {
      for (const std::int64_t columns : {16, 32}) {
        for (const std::int64_t segments : {1, 3, 27}) {
          for (const std::int64_t depth : {2, 4, 6, 34, 128}) {
            SCOPED_TRACE(fmt::format("{}: {} rows, {} columns, {} segments of {}, seed {}", name(path), rows,
                                     columns, segments, depth, seed));
            Case<TypeParam> product(rows, columns, segments, depth, seed++);

            expect_close(product.actual(false), product.expected(false), 1e-3);
            expect_close(product.actual(true), product.expected(true), 1e-3);
          }
        }
      }
    }
  }
}

TYPED_TEST(MicroProductTest, gives_a_row_the_same_sums_whatever_rows_are_beside_it) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    Case<TypeParam> product(29, 32, 2, 64, 7);
    const auto all = product.actual(false);
    for (std::int64_t rows = 1; rows < 29; ++rows) {
      product.use_rows(rows);

      const auto some = product.actual(false);

      EXPECT_TRUE(std::equal(some.begin() + 1, some.begin() + 1 + rows * 35 - 3, all.begin() + 1))
          << name(path) << ", " << rows << " rows";
    }
  }
}

TYPED_TEST(MicroProductTest, keeps_NaN_and_infinities_in_their_row) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    Case<TypeParam> product(14, 32, 1, 34, 3);
    set(product.a(3, 0), kNan);
    set(product.a(9, 33), kInfinity);

    const auto c = product.actual(false);

    for (std::int64_t row = 0; row < 14; ++row) {
      const bool finite = std::isfinite(c[static_cast<std::size_t>(1 + row * 35)]);
      EXPECT_EQ(finite, row != 3 && row != 9) << name(path) << ", row " << row;
    }
  }
}

#if defined(__x86_64__)
TEST(MicroProduct, of_onednn_equals_the_plain_twin) {
  for (const std::int64_t rows : {1, 12, 61}) {
    for (const std::int64_t columns : {16, 32}) {
      Case<Bf16> product(rows, columns, 3, 64, 11);
      const auto actual =
          product.result([](const auto& x, std::int64_t count) { onednn::multiply(x, count); }, true);

      expect_close(actual, product.expected(true), 1e-3);
    }
  }
}
#endif

}  // namespace
}  // namespace sluice::kernels
