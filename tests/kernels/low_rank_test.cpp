#include "kernels/low_rank.h"

#include "kernels/linear.h"
#include "kernels/linear_numbers.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace sluice::kernels {
namespace {

// Odd, single, a vector's width and beside it, and more than a tile has in f32.
constexpr std::int64_t kRanks[] = {1, 3, 32, 33, 128, 1026};

LowRank random_adapter(std::int64_t rank, const Matrix& weight, at::ScalarType dtype, float factor) {
  return {.down = at::randn({rank, weight.columns}).to(dtype),
          .up = at::randn({weight.rows, rank}).to(dtype),
          .factor = factor};
}

// The matrix with its adapters added to it, in f64, from the values that are computed with.
at::Tensor merged(const Matrix& weight, const LowRanks& adapters, at::ScalarType dtype) {
  at::Tensor values = values_of(weight, dtype);
  for (const LowRank& adapter : adapters)
    values += adapter.factor * at::matmul(values_of(adapter.up, dtype), values_of(adapter.down, dtype));
  return values;
}

// Of the largest result: in bf16 the inner values are rounded once more, as the result is.
double allowed_of(at::ScalarType dtype, std::int64_t in, std::int64_t rank) {
  return allowed(dtype, in) + allowed(dtype, rank);
}

class LowRankOf : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { at::manual_seed(7); }
};

TEST_P(LowRankOf, is_the_merged_matrix_for_every_format) {
  const std::int64_t rank = GetParam();
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const Kind& kind : kKinds) {
        SCOPED_TRACE(std::string(kind.name) + " in " + at::toString(dtype));
        const std::int64_t tokens = 50, in = 131, out = 70;
        const at::Tensor x = at::randn({tokens, in}).to(dtype), bias = at::randn({out});
        const Matrix weight = random_matrix(kind.dtype, out, in);
        const LowRanks adapters = {random_adapter(rank, weight, at::kBFloat16, 0.3F)};
        const at::Tensor truth = exact(x, merged(weight, adapters, dtype), bias);

        EXPECT_LT(difference(linear(x, {weight, bias, adapters}), truth), allowed_of(dtype, in, rank));
        EXPECT_LT(difference(reference::linear(x, {weight, bias, adapters}), truth),
                  allowed_of(dtype, in, rank));
      }
    }
  });
}

TEST_P(LowRankOf, does_not_depend_on_the_address) {
  const std::int64_t rank = GetParam();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto stored : {at::kFloat, at::kBFloat16, at::kHalf}) {
      const Matrix weight = random_matrix(at::kFloat8_e4m3fn, 40, 66);
      const at::Tensor x = at::randn({9, 66}).to(dtype);
      const LowRank adapter = random_adapter(rank, weight, stored, 1);
      std::vector<char> down, up;
      const LowRanks moved = {{.down = unaligned(adapter.down, down), .up = unaligned(adapter.up, up)}},
                     aligned = {adapter};

      EXPECT_TRUE(at::equal(linear(x, {weight, {}, moved}), linear(x, {weight, {}, aligned})));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, LowRankOf, ::testing::ValuesIn(kRanks));

TEST(LowRank, comes_before_activation_gate_and_residual) {
  at::manual_seed(3);
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({2, 30, 97}).to(dtype), bias = at::randn({33});
      const Matrix weight = random_matrix(at::kByte, 33, 97);
      const LowRanks adapters = {random_adapter(5, weight, at::kFloat, 0.1F)};
      const Epilogue epilogue{.activation = Activation::gelu_tanh,
                              .gate = at::randn({2, 1, 33}).to(dtype),
                              .residual = at::randn({2, 30, 33}).to(dtype)};
      const at::Tensor truth = exact(x, merged(weight, adapters, dtype), bias, epilogue);

      EXPECT_LT(difference(linear(x, {weight, bias, adapters}, epilogue), truth), allowed_of(dtype, 97, 5));
      EXPECT_LT(difference(reference::linear(x, {weight, bias, adapters}, epilogue), truth),
                allowed_of(dtype, 97, 5));
    }
  });
}

TEST(LowRank, adds_several_adapters_of_several_dtypes_and_ranks) {
  at::manual_seed(3);
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({60, 1100}).to(dtype);
      const Matrix weight = random_matrix(at::kBFloat16, 130, 1100);
      const LowRanks adapters = {random_adapter(3, weight, at::kFloat, -0.7F),
                                 random_adapter(32, weight, at::kBFloat16, 0.25F),
                                 random_adapter(7, weight, at::kHalf, 1)};
      const at::Tensor truth = exact(x, merged(weight, adapters, dtype), {});

      EXPECT_LT(difference(linear(x, {weight, {}, adapters}), truth), allowed_of(dtype, 1100, 32));
    }
  });
}

TEST(LowRank, of_factor_zero_changes_nothing) {
  at::manual_seed(3);
  const Matrix weight = random_matrix(at::kFloat, 20, 30);
  const at::Tensor x = at::randn({4, 30});
  const LowRanks adapters = {random_adapter(8, weight, at::kFloat, 0)};

  EXPECT_TRUE(at::equal(linear(x, {weight, {}, adapters}), linear(x, weight, {})));
}

TEST(LowRank, depends_neither_on_threads_nor_on_other_tokens) {
  at::manual_seed(2);
  const int threads = at::get_num_threads();
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({1500, 301}).to(dtype);
      const Matrix weight = random_matrix(at::kFloat8_e4m3fn, 40, 301);
      const LowRanks adapters = {random_adapter(33, weight, at::kBFloat16, 0.5F)};
      const at::Tensor among = linear(x, {weight, {}, adapters});
      for (const int other : {1, 3}) {
        at::set_num_threads(other);
        EXPECT_TRUE(at::equal(linear(x, {weight, {}, adapters}), among)) << other;
      }
      at::set_num_threads(threads);
      for (const std::int64_t token : {0, 47, 48, 751, 1499}) {
        EXPECT_TRUE(at::equal(among.slice(0, token, token + 1),
                              linear(x.slice(0, token, token + 1), {weight, {}, adapters})));
      }
    }
  });
}

TEST(LowRank, shows_non_finite_values_where_they_are) {
  const Matrix weight(at::ones({4, 6}));
  LowRanks adapters = {{.down = at::ones({3, 6}), .up = at::ones({4, 3})}};
  adapters[0].up[2][2] = std::numeric_limits<float>::quiet_NaN();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor y = linear(at::ones({5, 6}, dtype), {weight, {}, adapters});

    EXPECT_TRUE(at::isnan(y.select(1, 2)).all().item<bool>());
    EXPECT_EQ(at::isnan(y).sum().item<std::int64_t>(), 5);
  }
}

TEST(LowRank, takes_what_its_plan_says_beside_the_product) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const Matrix weight = random_matrix(at::kBFloat16, 64, 128);
    const at::Tensor x = at::randn({700, 128}).to(dtype);
    const LowRanks adapters = {random_adapter(33, weight, at::kFloat, 1),
                               random_adapter(8, weight, at::kFloat, 1)};
    at::Tensor y = at::empty({700, 64}, dtype);
    auto used = [&](std::span<const LowRank> with) {
      Workspace workspace;
      linear(x, {weight, {}, with}, {}, workspace, y);
      return workspace.most_used();
    };

    EXPECT_EQ(used(adapters) - used({}), low_rank_scratch(700, std::vector<std::int64_t>{33, 8}, dtype));
  }
}

TEST(LowRank, refuses_an_adapter_of_another_layer) {
  const Matrix weight(at::ones({4, 6}));
  for (const LowRank& wrong : {LowRank{.down = at::ones({3, 7}), .up = at::ones({4, 3})},
                               LowRank{.down = at::ones({3, 6}), .up = at::ones({5, 3})},
                               LowRank{.down = at::ones({3, 6}), .up = at::ones({4, 2})},
                               LowRank{.down = at::ones({0, 6}), .up = at::ones({4, 0})}}) {
    const LowRanks adapters = {wrong};
    EXPECT_THAT(
        [&] {
          linear(at::ones({1, 6}), {weight, {}, adapters});
        },
        test::ThrowsError(ErrorKind::internal, ::testing::HasSubstr("a linear layer [4, 6]")));
  }
}

}  // namespace
}  // namespace sluice::kernels
