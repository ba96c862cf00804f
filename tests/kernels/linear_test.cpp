#include "kernels/linear.h"

#include "kernels/epilogue.h"
#include "kernels/small_products.h"
#include "kernels/widen.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <gtest/gtest.h>

#include <cstring>
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

// Around the blocks: 64 tokens, 64 rows of the weight, 4 KiB of a row, vectors of 16; odd, and single rows.
const std::vector<Shape> kShapes = {{1, 64, 64},   {1, 2, 1},       {3, 17, 5},     {64, 128, 64},
                                    {65, 66, 130}, {130, 1026, 70}, {70, 2050, 33}, {5, 4100, 129}};

struct Kind {
  const char* name;
  at::ScalarType dtype;  // of the weight; kByte: NF4
};
constexpr Kind kKinds[] = {{"f32", at::kFloat},
                           {"bf16", at::kBFloat16},
                           {"f16", at::kHalf},
                           {"fp8", at::kFloat8_e4m3fn},
                           {"nf4", at::kByte}};

Matrix random_matrix(at::ScalarType dtype, std::int64_t rows, std::int64_t columns) {
  const std::int64_t count = rows * columns;
  if (dtype == at::kByte)
    return {at::randint(0, 256, {(count + 1) / 2, 1}, at::kByte), at::rand({(count + 63) / 64}), rows,
            columns};
  const at::Tensor values = at::randn({rows, columns});
  if (dtype == at::kFloat8_e4m3fn) return {values.to(dtype), at::full({}, 0.37F), rows, columns};
  return {values.to(dtype)};
}

// The same tensor one byte after an aligned address.
at::Tensor unaligned(const at::Tensor& x, std::vector<char>& storage) {
  storage.assign(x.nbytes() + 1, 0);
  std::memcpy(storage.data() + 1, x.const_data_ptr(), x.nbytes());
  return at::from_blob(storage.data() + 1, x.sizes(), x.options());
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b).abs().max() / b.abs().max()).item<double>();
}

// In f64, from what the weight's values are.
at::Tensor exact(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue) {
  at::Tensor values = at::empty({weight.rows, weight.columns}, x.scalar_type());
  reference::widen_rows(weight, 0, weight.rows, values);
  at::Tensor y = at::matmul(x.to(at::kDouble), values.to(at::kDouble).t());
  if (bias.defined()) y += bias.to(x.scalar_type()).to(at::kDouble);
  return epilogue == Epilogue::gelu_tanh ? at::gelu(y, "tanh") : y;
}

class LinearOf : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { at::manual_seed(11); }
};

TEST_P(LinearOf, is_the_formula_for_every_format) {
  const auto [tokens, in, out] = GetParam();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const double allowed = dtype == at::kFloat ? 2e-6 : 0.008;
    const at::Tensor x = at::randn({tokens, in}).to(dtype), bias = at::randn({out});
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(std::string(kind.name) + " in " + at::toString(dtype));
      const Matrix weight = random_matrix(kind.dtype, out, in);
      for (const Epilogue epilogue : {Epilogue::none, Epilogue::gelu_tanh}) {
        const at::Tensor truth = exact(x, weight, bias, epilogue);
        EXPECT_LT(difference(linear(x, weight, bias, epilogue), truth), allowed);
        EXPECT_LT(difference(reference::linear(x, weight, bias, epilogue), truth), allowed);
      }
      EXPECT_LT(difference(linear(x, weight, {}), exact(x, weight, {}, Epilogue::none)), allowed);
    }
  }
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

INSTANTIATE_TEST_SUITE_P(Shapes, LinearOf, testing::ValuesIn(kShapes));

TEST(Linear, a_token_gets_the_same_among_others_as_alone) {
  at::manual_seed(2);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    if (!has_small_products(dtype, 300)) continue;  // oneDNN's large product gives no such promise
    const at::Tensor x = at::randn({2100, 300}).to(dtype);
    const Matrix weight = random_matrix(at::kFloat8_e4m3fn, 40, 300);

    const at::Tensor among = linear(x, weight, {});

    for (const std::int64_t token : {0, 63, 64, 1000, 2047, 2048, 2099})
      EXPECT_TRUE(
          at::equal(among.slice(0, token, token + 1), linear(x.slice(0, token, token + 1), weight, {})));
  }
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

TEST(Linear, shows_non_finite_weights) {
  at::Tensor codes = at::zeros({4, 32}, at::kByte);
  codes[2][5] = 0x7f;
  const Matrix weight(codes.view(at::kFloat8_e4m3fn), at::ones({1}), 4, 32);

  const at::Tensor y = linear(at::ones({1, 32}), weight, {});

  EXPECT_TRUE(at::isnan(y[0][2]).item<bool>());
  EXPECT_EQ(at::isnan(y).sum().item<std::int64_t>(), 1);
}

TEST(FinishRow, gelu_holds_over_the_whole_range) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity(), kHuge = 3e38F;
  const at::Tensor x =
      at::cat({at::linspace(-60, 60, 4001), at::tensor({1e-30F, -1e-30F, kHuge, kInfinity})});
  at::Tensor y = at::empty_like(x);

  finish_row(x.const_data_ptr<float>(), x.numel(), nullptr, Epilogue::gelu_tanh, y.mutable_data_ptr<float>());

  EXPECT_TRUE(at::allclose(y.to(at::kDouble), at::gelu(x.to(at::kDouble), "tanh"), 2e-6, 1e-7));
}

}  // namespace
}  // namespace sluice::kernels
