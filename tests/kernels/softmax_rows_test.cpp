#include "kernels/softmax_rows.h"

#include "support/cpu_path_scope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kStride = 80, kRows = 7, kWidth = 16;

class Case {  // seven rows of random scores, which have seen a block before
 public:
  explicit Case(std::int64_t columns, unsigned seed = 5)
      : scores_(kRows * kStride), bias_(kRows * kStride), sums_(kRows * kWidth, 1), states_(kRows) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value(0, 8);
    for (float& x : scores_) x = value(random);
    for (float& x : bias_) x = value(random);
    for (SoftmaxState& state : states_) state = {.max = value(random), .sum = 3};
    states_[2] = SoftmaxState{};
    block_ = {.stride = kStride,
              .rows = kRows,
              .columns = columns,
              .scale = 0.3F,
              .sums_stride = kWidth,
              .width = kWidth};
  }

  SoftmaxBlock& block() { return block_; }
  std::vector<float>& scores() { return scores_; }
  std::vector<float>& sums() { return sums_; }
  std::vector<SoftmaxState>& states() { return states_; }
  void use_bias(std::int64_t stride) { block_.bias = bias_.data(), block_.bias_stride = stride; }

  template <typename Softmax>
  Case after(const Softmax& softmax) const {
    Case result = *this;
    result.block_.scores = result.scores_.data();
    result.block_.states = result.states_.data();
    result.block_.sums = result.sums_.data();
    softmax(result.block_);
    return result;
  }

  float f32(std::int64_t row, std::int64_t column) const {
    return scores_[static_cast<std::size_t>(row * kStride + column)];
  }
  float bf16(std::int64_t row, std::int64_t column) const {
    std::uint16_t half;
    std::memcpy(
        &half,
        reinterpret_cast<const std::byte*>(&scores_[static_cast<std::size_t>(row * kStride)]) + 2 * column,
        2);
    const std::uint32_t bits = std::uint32_t{half} << 16;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
  }

 private:
  std::vector<float> scores_, bias_, sums_;
  std::vector<SoftmaxState> states_;
  SoftmaxBlock block_;
};

void expect_equal(Case actual, Case expected, float (Case::*value)(std::int64_t, std::int64_t) const,
                  double relative) {
  for (std::int64_t row = 0; row < kRows; ++row) {
    const auto i = static_cast<std::size_t>(row);
    for (std::int64_t column = 0; column < (actual.block().columns + 31) / 32 * 32; ++column) {
      const double weight = (expected.*value)(row, column);
      ASSERT_NEAR((actual.*value)(row, column), weight, relative * weight + 1e-37)
          << "row " << row << ", column " << column;
    }
    EXPECT_NEAR(actual.states()[i].max, expected.states()[i].max, 1e-5) << "row " << row;
    EXPECT_NEAR(actual.states()[i].sum, expected.states()[i].sum, 2 * relative * expected.states()[i].sum);
    for (std::size_t j = i * kWidth; j < (i + 1) * kWidth; ++j)
      EXPECT_NEAR(actual.sums()[j], expected.sums()[j], 1e-5 * expected.sums()[j]) << "row " << row;
  }
}

void expect_twins_equal(const Case& block) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    SCOPED_TRACE(name(path));
    expect_equal(block.after(softmax_to_f32), block.after(reference::softmax_to_f32), &Case::f32, 1e-5);
    expect_equal(block.after(softmax_to_bf16), block.after(reference::softmax_to_bf16), &Case::bf16, 0.008);
  }
}

TEST(SoftmaxRows, equal_the_plain_twin_whatever_the_columns) {
  for (const std::int64_t columns : {1, 2, 15, 16, 17, 31, 32, 33, 64}) {
    SCOPED_TRACE(columns);
    Case block(columns);
    expect_twins_equal(block);

    block.block().scale = -0.2F;
    expect_twins_equal(block);
  }
}

TEST(SoftmaxRows, equal_the_plain_twin_with_bias_and_hidden_columns) {
  const std::vector<SoftmaxSpan> spans = {{0, 40}, {0, 1}, {39, 40}, {7, 7}, {3, 20}, {16, 32}, {0, 39}};
  for (const std::int64_t stride : {std::int64_t{0}, kStride}) {
    Case block(40);
    block.use_bias(stride);
    expect_twins_equal(block);

    block.block().spans = spans.data();
    expect_twins_equal(block);
  }
}

TEST(SoftmaxRows, are_exact_over_the_whole_range_of_scores) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const float spread : {0.0F, 1.0F, 30.0F, 86.0F, 200.0F, 1e6F}) {
      Case block(40);
      block.states()[0] = SoftmaxState{};
      block.block().rows = 1, block.block().scale = 1;
      for (std::size_t i = 0; i < 40; ++i) block.scores()[i] = -spread * static_cast<float>(i) / 39;

      Case after = block.after(softmax_to_f32);

      for (std::int64_t i = 0; i < 40; ++i) {
        const double score = block.scores()[static_cast<std::size_t>(i)], weight = std::exp(score);
        EXPECT_NEAR(after.f32(0, i), weight, (2.4e-7 - 1e-7 * score) * weight + 2e-38)
            << name(path) << ", " << spread;
      }
      for (std::int64_t i = 40; i < 64; ++i) EXPECT_EQ(after.f32(0, i), 0.0F);
      EXPECT_EQ(after.states()[0].max, 0.0F);
    }
  }
}

TEST(SoftmaxRows, keep_NaN_and_give_nothing_to_what_is_infinitely_low) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    Case block(40);
    block.scores()[3] = std::numeric_limits<float>::quiet_NaN();
    block.scores()[kStride + 4] = kNever;
    for (std::size_t i = 0; i < 40; ++i) block.scores()[2 * kStride + i] = kNever;

    Case wide = block.after(softmax_to_f32), narrow = block.after(softmax_to_bf16);

    EXPECT_TRUE(std::isnan(wide.f32(0, 3)) && std::isnan(narrow.bf16(0, 3))) << name(path);
    EXPECT_TRUE(std::isnan(wide.states()[0].sum) && std::isnan(narrow.states()[0].sum)) << name(path);
    EXPECT_TRUE(std::isfinite(wide.f32(0, 4)) && std::isfinite(narrow.bf16(0, 4))) << name(path);
    EXPECT_EQ(wide.f32(1, 4), 0.0F) << name(path);
    EXPECT_EQ(narrow.bf16(1, 4), 0.0F) << name(path);
    EXPECT_EQ(wide.states()[2].sum, 0.0F) << name(path);  // had seen nothing before either
    EXPECT_EQ(wide.states()[2].max, kNever) << name(path);
  }
}

}  // namespace
}  // namespace sluice::kernels
