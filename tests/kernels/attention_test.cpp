#include "kernels/attention.h"

#include "kernels/softmax_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sluice::kernels {
namespace {

struct Shape {
  std::int64_t batch, heads, tokens, keys, dim;
};

// Sizes around the blocks (128 rows, 512 keys), the lanes (16) and pairs of keys, and those of the models.
const std::vector<Shape> kShapes = {{1, 2, 5, 7, 8},       {2, 3, 128, 512, 16}, {1, 1, 129, 513, 64},
                                    {2, 2, 300, 1025, 24}, {1, 4, 26, 1024, 64}, {1, 2, 256, 26, 128},
                                    {1, 1, 1, 1, 2},       {3, 1, 17, 31, 4}};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << "x" << s.heads << "x" << s.tokens << "x" << s.keys << "x" << s.dim;
}

class AttentionOf : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    at::manual_seed(7);
    // As projections leave them: heads beside each other in a row.
    const auto [batch, heads, tokens, keys, dim] = GetParam();
    auto heads_of = [&, heads = heads, dim = dim, batch = batch](std::int64_t rows) {
      return at::randn({batch, rows, heads * dim}).unflatten(2, {heads, dim}).transpose(1, 2);
    };
    q = heads_of(tokens) * 2, k = heads_of(keys) * 2, v = heads_of(keys);
    bias = at::randn({batch, 1, tokens, keys});
  }

  at::Tensor q, k, v, bias;
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).abs().max() / b.to(at::kDouble).abs().max()).item<double>();
}

at::Tensor exact(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias = {}) {
  at::Tensor scores = at::matmul(q.to(at::kDouble), k.to(at::kDouble).transpose(2, 3));
  scores = scores / std::sqrt(static_cast<double>(q.size(3)));
  if (bias.defined()) scores = scores + bias.to(at::kDouble);
  return at::matmul(at::softmax(scores, -1), v.to(at::kDouble)).transpose(1, 2).flatten(2);
}

TEST_P(AttentionOf, f32_is_the_formula) {
  EXPECT_LT(difference(attention(q, k, v), exact(q, k, v)), 2e-6);
  EXPECT_LT(difference(attention(q, k, v, bias), exact(q, k, v, bias)), 2e-6);
}

TEST_P(AttentionOf, bf16_is_as_near_to_the_formula_as_its_plain_twin) {
  const auto b = at::kBFloat16;
  const at::Tensor truth = exact(q.to(b), k.to(b), v.to(b), bias.to(b));

  const double ours = difference(attention(q.to(b), k.to(b), v.to(b), bias.to(b)), truth);

  EXPECT_LT(ours, 0.01);
  EXPECT_LT(ours,
            1.5 * difference(reference::attention(q.to(b), k.to(b), v.to(b), bias.to(b)), truth) + 1e-3);
}

TEST_P(AttentionOf, does_not_depend_on_the_number_of_threads) {
  const at::Tensor several = attention(q, k, v, bias);

  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 3 : 1);
  const at::Tensor other = attention(q, k, v, bias);
  at::set_num_threads(threads);

  EXPECT_TRUE(at::equal(several, other));
}

TEST_P(AttentionOf, shows_non_finite_input) {
  v.select(2, 0).fill_(std::numeric_limits<float>::quiet_NaN());

  EXPECT_TRUE(at::isnan(attention(q, k, v)).all().item<bool>());

  q.fill_(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::isnan(attention(q, k, k)).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOf, testing::ValuesIn(kShapes));

TEST(Attention, masked_keys_have_no_part_in_the_result) {
  at::manual_seed(1);
  const at::Tensor q = at::randn({1, 2, 20, 8}), k = at::randn({1, 2, 600, 8}), v = at::randn({1, 2, 600, 8});
  at::Tensor mask = at::zeros({1, 1, 1, 600});
  mask.narrow(3, 100, 500).fill_(-std::numeric_limits<float>::infinity());

  const at::Tensor masked = attention(q, k, v, mask);

  EXPECT_LT(difference(masked, attention(q, k.narrow(2, 0, 100), v.narrow(2, 0, 100))), 1e-6);
}

TEST(Attention, gives_zeros_where_everything_is_masked) {
  const at::Tensor x = at::ones({1, 1, 3, 8});

  const at::Tensor out = attention(x, x, x, at::full({1, 1, 3, 3}, -std::numeric_limits<float>::infinity()));

  EXPECT_TRUE(at::equal(out, at::zeros({1, 3, 8})));
}

TEST(SoftmaxRow, holds_over_the_whole_range_of_scores) {
  for (const float spread : {0.0F, 1.0F, 30.0F, 86.0F, 200.0F, 1e6F}) {
    std::vector<float> row;
    for (int i = 0; i < 40; ++i) row.push_back(-spread * static_cast<float>(i) / 39);
    row.resize(48);
    std::vector<double> expected;
    for (int i = 0; i < 40; ++i)
      expected.push_back(std::exp(static_cast<double>(row[static_cast<std::size_t>(i)])));

    SoftmaxState state;
    softmax_row(row.data(), 40, 1.0F, nullptr, state);

    for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(row[i], expected[i], 3e-7 * expected[i] + 2e-38);
    for (std::size_t i = 40; i < 48; ++i) EXPECT_EQ(row[i], 0.0F);
    EXPECT_EQ(state.max, 0.0F);
  }
}

}  // namespace
}  // namespace sluice::kernels
