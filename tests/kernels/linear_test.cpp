#include "kernels/linear.h"

#include "kernels/epilogue.h"
#include "kernels/linear_numbers.h"
#include "kernels/rows.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <ostream>
#include <string>
#include <vector>

namespace sluice::kernels {
namespace {

struct Shape {
  std::int64_t tokens, in, out;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.tokens << "x" << s.in << "->" << s.out;
}

// Around the blocks: 48 tokens, 64 rows of the weight, 4 KiB of a row, vectors of 16; odd, and single rows.
const std::vector<Shape> kShapes = {{1, 64, 64},   {1, 2, 1},       {3, 17, 5},     {64, 128, 64},
                                    {65, 66, 130}, {130, 1026, 70}, {70, 2050, 33}, {5, 4100, 129}};

class LinearOf : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { at::manual_seed(11); }
};

TEST_P(LinearOf, is_the_formula_for_every_format) {
  const auto [tokens, in, out] = GetParam();
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({tokens, in}).to(dtype), bias = at::randn({out});
      for (const Kind& kind : kKinds) {
        SCOPED_TRACE(std::string(kind.name) + " in " + at::toString(dtype));
        const Matrix weight = random_matrix(kind.dtype, out, in);
        for (const Activation activation : {Activation::none, Activation::gelu_tanh}) {
          const Epilogue epilogue{.activation = activation};
          const at::Tensor truth = exact(x, weight, bias, epilogue);
          EXPECT_LT(difference(linear(x, weight, bias, epilogue), truth), allowed(dtype, in));
          EXPECT_LT(difference(reference::linear(x, weight, bias, epilogue), truth), allowed(dtype, in));
        }
        EXPECT_LT(difference(linear(x, weight, {}), exact(x, weight, {})), allowed(dtype, in));
      }
    }
  });
}

TEST_P(LinearOf, does_not_depend_on_the_address) {
  const auto [tokens, in, out] = GetParam();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({tokens, in}).to(dtype), bias = at::randn({out}).to(dtype);
    for (const Kind& kind : kKinds) {
      const Matrix weight = random_matrix(kind.dtype, out, in);
      std::vector<char> values, scales, biases;
      const at::Tensor moved_scales =
          weight.scales.defined() ? unaligned(weight.scales, scales) : at::Tensor();
      const Matrix moved(unaligned(weight.values, values), moved_scales, out, in);

      EXPECT_TRUE(at::equal(linear(x, moved, unaligned(bias, biases)), linear(x, weight, bias))) << kind.name;
    }
  }
}

TEST_P(LinearOf, does_not_depend_on_the_number_of_threads) {
  const auto [tokens, in, out] = GetParam();
  const int threads = at::get_num_threads();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({tokens, in}).to(dtype), bias = at::randn({out});
    const Matrix weight = random_matrix(at::kByte, out, in);
    const at::Tensor several = linear(x, weight, bias);
    for (const int other : {1, 3, 5}) {
      at::set_num_threads(other);
      EXPECT_TRUE(at::equal(linear(x, weight, bias), several)) << other;
    }
    at::set_num_threads(threads);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearOf, ::testing::ValuesIn(kShapes));

TEST(Linear, a_token_gets_the_same_among_others_as_alone) {
  at::manual_seed(2);
  on_each_path([&] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor x = at::randn({2100, 301}).to(dtype);
      const Matrix weight = random_matrix(at::kFloat8_e4m3fn, 40, 301);

      const at::Tensor among = linear(x, weight, {});

      for (const std::int64_t token : {0, 47, 48, 699, 700, 1400, 2099})
        EXPECT_TRUE(
            at::equal(among.slice(0, token, token + 1), linear(x.slice(0, token, token + 1), weight, {})));
    }
  });
}

struct Gated {
  const char* name;
  RowVectors gate;
};

// Every way in which tokens of two batch entries have gates.
std::vector<Gated> gates(std::int64_t tokens, std::int64_t out, at::ScalarType dtype) {
  auto random = [&](at::IntArrayRef sizes) { return at::randn(sizes).to(dtype); };
  return {{"none", {}},
          {"one for all", random({1, 1, out})},
          {"one a batch entry", random({2, 1, out})},
          {"one a token", random({1, tokens, out})},
          {"one for each", random({2, tokens, out})},
          {"by an index", {random({3, out}), at::randint(0, 3, {2 * tokens}, at::kLong)}}};
}

TEST(Linear, adds_the_gated_result_to_the_residual) {
  at::manual_seed(5);
  on_each_path([] {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      for (const auto& [tokens, in, out] : std::vector<Shape>{{1, 6, 3}, {50, 33, 97}, {30, 4100, 64}}) {
        const at::Tensor x = at::randn({2, tokens, in}).to(dtype), bias = at::randn({out}),
                         residual = at::randn({2, tokens, out}).to(dtype);
        const Matrix weight = random_matrix(at::kBFloat16, out, in);
        for (const Gated& gated : gates(tokens, out, dtype)) {
          SCOPED_TRACE(gated.name);
          const Epilogue epilogue{.gate = gated.gate, .residual = residual};

          EXPECT_LT(difference(linear(x, weight, bias, epilogue), exact(x, weight, bias, epilogue)),
                    allowed(dtype, in));
          EXPECT_LT(
              difference(reference::linear(x, weight, bias, epilogue), exact(x, weight, bias, epilogue)),
              allowed(dtype, in));
        }
      }
    }
  });
}

TEST(Linear, updates_its_residual_in_place) {
  at::manual_seed(5);
  const at::Tensor x = at::randn({2, 30, 40}), gate = at::randn({1, 1, 70});
  at::Tensor y = at::randn({2, 30, 70});
  const Matrix weight = random_matrix(at::kFloat, 70, 40);
  const at::Tensor expected = linear(x, weight, {}, {.gate = gate, .residual = y.clone()});

  Workspace workspace;
  linear(x, weight, {}, {.gate = gate, .residual = y}, workspace, y);

  EXPECT_TRUE(at::equal(y, expected));
}

TEST(Linear, reads_and_writes_rows_at_any_distance) {
  at::manual_seed(5);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({2, 30, 40}).to(dtype);
    const Matrix weight = random_matrix(dtype, 70, 40);
    at::Tensor memory = at::full({2, 30, 75}, 7, dtype), y = memory.narrow(2, 0, 70);
    Workspace workspace;

    linear(at::constant_pad_nd(x, {0, 5}, 9).narrow(2, 0, 40), weight, {}, {}, workspace, y);

    EXPECT_TRUE(at::equal(y, linear(x, weight, {})));
    EXPECT_TRUE(at::equal(memory.narrow(2, 70, 5), at::full({2, 30, 5}, 7, dtype)));
  }
}

TEST(Linear, refuses_a_result_of_another_shape) {
  Workspace workspace;
  at::Tensor y = at::empty({2, 5});
  EXPECT_THAT(
      [&] {
        linear(at::ones({2, 3}), at::ones({4, 3}), {}, {}, workspace, y);
      },
      test::ThrowsError(ErrorKind::internal, ::testing::HasSubstr("[4, 3] between [2, 3] and [2, 5]")));
}

TEST(Linear, takes_any_number_of_axes_and_strides) {
  at::manual_seed(2);
  const at::Tensor x = at::randn({24, 3, 2}).permute({2, 1, 0}), values = at::randn({7, 24});
  const Matrix weight(values);

  const at::Tensor y = linear(x, weight, {});

  EXPECT_EQ(y.sizes(), (std::vector<std::int64_t>{2, 3, 7}));
  EXPECT_LT(difference(y, at::matmul(x.to(at::kDouble), values.to(at::kDouble).t())), 2e-6);
  EXPECT_EQ(linear(at::empty({0, 24}), weight, {}).sizes(), (std::vector<std::int64_t>{0, 7}));
}

TEST(Linear, shows_non_finite_weights_and_inputs_where_they_are) {
  at::Tensor codes = at::zeros({4, 32}, at::kByte);
  codes[2][5] = 0x7f;
  const Matrix weight(codes.view(at::kFloat8_e4m3fn), at::ones({1}), 4, 32);
  on_each_path([&] {
    const at::Tensor y = linear(at::ones({1, 32}), weight, {});
    EXPECT_TRUE(at::isnan(y[0][2]).item<bool>());
    EXPECT_EQ(at::isnan(y).sum().item<std::int64_t>(), 1);

    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      at::Tensor x = at::ones({20, 33}, dtype);
      x[3][32] = std::numeric_limits<float>::infinity();
      x[4][0] = std::numeric_limits<float>::quiet_NaN();
      const at::Tensor of_x = linear(x, at::ones({5, 33}, dtype), {});
      EXPECT_TRUE(at::isinf(of_x[3]).all().item<bool>());
      EXPECT_TRUE(at::isnan(of_x[4]).all().item<bool>());
      EXPECT_EQ(at::isfinite(of_x).sum().item<std::int64_t>(), 18 * 5);
    }
  });
}

TEST(FinishRows, gelu_holds_over_the_whole_range) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kHuge = 3e38F;
  const at::Tensor x =
      at::cat({at::linspace(-60, 60, 4001), at::tensor({1e-30F, -1e-30F, kHuge, kInfinity})});
  on_each_path([&] {
    at::Tensor y = at::empty_like(x);
    const FinishedRows<float> rows{.sums = x.const_data_ptr<float>(),
                                   .activation = Activation::gelu_tanh,
                                   .to = y.mutable_data_ptr<float>()};

    finish_rows(rows, 0, 1, x.numel());

    EXPECT_TRUE(at::allclose(y.to(at::kDouble), at::gelu(x.to(at::kDouble), "tanh"), 2e-6, 1e-7));
  });
}

}  // namespace
}  // namespace sluice::kernels
