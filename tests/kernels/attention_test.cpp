#include "kernels/attention.h"

#include "kernels/softmax_rows.h"

#include <sluice/error.h>

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

// Sizes around the blocks (64 rows, 512 keys), the lanes (16) and pairs of keys, and those of the models.
const std::vector<Shape> kShapes = {{1, 2, 5, 7, 8},       {2, 3, 128, 512, 16}, {1, 1, 129, 513, 64},
                                    {2, 2, 300, 1025, 24}, {1, 4, 26, 1024, 64}, {1, 2, 256, 26, 128},
                                    {1, 1, 1, 1, 2},       {3, 1, 17, 31, 4}};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << "x" << s.heads << "x" << s.tokens << "x" << s.keys << "x" << s.dim;
}

struct BudgetGuard {
  ~BudgetGuard() { set_attention_budget(AttentionLimits{}.scratch); }
};

AttentionShape shape_of(const at::Tensor& q, const at::Tensor& k, at::ScalarType dtype) {
  return {.heads = q.size(0) * q.size(1),
          .tokens = q.size(2),
          .keys = k.size(2),
          .dim = q.size(3),
          .dtype = dtype};
}

// The first that is not refused.
Bytes smallest_budget(const AttentionShape& shape) {
  Bytes refused = 0, enough = MiB(64);
  while (enough - refused > 1) {
    const Bytes middle = (refused + enough) / 2;
    try {
      plan_attention(shape, 1, {.scratch = middle});
      enough = middle;
    } catch (const Error&) {
      refused = middle;
    }
  }
  return enough;
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
  EXPECT_LT(
      ours,
      1.5 * difference(reference::attention(q.to(b), k.to(b), v.to(b), {.bias = bias.to(b)}), truth) + 1e-3);
}

TEST_P(AttentionOf, does_not_depend_on_the_number_of_threads) {
  const at::Tensor several = attention(q, k, v, bias);

  const int threads = at::get_num_threads();
  at::set_num_threads(threads == 1 ? 3 : 1);
  const at::Tensor other = attention(q, k, v, bias);
  at::set_num_threads(threads);

  EXPECT_TRUE(at::equal(several, other));
}

// Budgets that leave a worker sixteen rows a pass, part of a block, some blocks, and everything.
TEST_P(AttentionOf, does_not_depend_on_the_budget) {
  const BudgetGuard guard;
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor whole = attention(q.to(dtype), k.to(dtype), v.to(dtype), bias);
    const AttentionShape shape = shape_of(q, k, dtype);
    for (const Bytes more : {Bytes{0}, KiB(64), KiB(300), MiB(1), MiB(8)}) {
      set_attention_budget(smallest_budget(shape) + more);
      EXPECT_TRUE(at::equal(attention(q.to(dtype), k.to(dtype), v.to(dtype), bias), whole)) << more;
    }
  }
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

struct MaskedShape {
  std::int64_t heads, kv_heads, tokens, window;
};

void PrintTo(const MaskedShape& s, std::ostream* out) {
  *out << s.heads << " heads over " << s.kv_heads << ", " << s.tokens << " tokens, window " << s.window;
}

class MaskedAttention : public testing::TestWithParam<MaskedShape> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    const auto [heads, kv_heads, tokens, window] = GetParam();
    q = at::randn({1, heads, tokens, 32}), k = at::randn({1, kv_heads, tokens, 32});
    v = at::randn({1, kv_heads, tokens, 32});
    options.visible = Visible::up_to_own;
    options.window = window;
    options.scale = 0.3;
  }

  at::Tensor from_formula() const {
    const auto [heads, kv_heads, tokens, window] = GetParam();
    at::Tensor hidden = at::full({tokens, tokens}, -std::numeric_limits<double>::infinity(), at::kDouble);
    for (std::int64_t row = 0; row < tokens; ++row)
      hidden[row].slice(0, window > 0 ? std::max<std::int64_t>(0, row - window + 1) : 0, row + 1).fill_(0);
    const std::int64_t share = heads / kv_heads;
    // exact() divides by sqrt(dim).
    return exact(q.to(at::kDouble) * 0.3 * std::sqrt(32.0), k.repeat_interleave(share, 1),
                 v.repeat_interleave(share, 1), hidden);
  }

  at::Tensor q, k, v;
  AttentionOptions options;
};

TEST_P(MaskedAttention, rows_see_what_is_before_them_within_the_window) {
  EXPECT_LT(difference(attention(q, k, v, options), from_formula()), 2e-6);
  EXPECT_LT(difference(reference::attention(q, k, v, options), from_formula()), 2e-6);
}

TEST_P(MaskedAttention, what_is_hidden_has_no_part_in_the_result) {
  const at::Tensor before = attention(q, k, v, options);
  const std::int64_t tokens = q.size(2), half = tokens / 2;
  k.slice(2, half).fill_(3), v.slice(2, half).fill_(1e6);

  const at::Tensor after = attention(q, k, v, options);

  EXPECT_TRUE(at::equal(before.slice(1, 0, half), after.slice(1, 0, half)));
}

TEST_P(MaskedAttention, does_not_depend_on_the_budget_or_the_number_of_threads) {
  const BudgetGuard guard;
  const int threads = at::get_num_threads();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor whole = attention(q.to(dtype), k.to(dtype), v.to(dtype), options);
    for (const Bytes more : {Bytes{0}, KiB(100), MiB(1)}) {
      for (const int count : {1, 3}) {
        at::set_num_threads(count);
        set_attention_budget(smallest_budget(shape_of(q, k, dtype)) + more);
        EXPECT_TRUE(at::equal(attention(q.to(dtype), k.to(dtype), v.to(dtype), options), whole)) << more;
      }
    }
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Shapes, MaskedAttention,
                         testing::Values(MaskedShape{2, 2, 7, 0}, MaskedShape{4, 2, 300, 0},
                                         MaskedShape{4, 1, 1100, 0}, MaskedShape{2, 1, 1100, 200},
                                         MaskedShape{2, 2, 1300, 512}, MaskedShape{1, 1, 40, 1}));

TEST(Attention, refuses_a_budget_below_one_worker_naming_the_smallest) {
  const BudgetGuard guard;
  const at::Tensor x = at::randn({1, 2, 1000, 64});
  const Bytes least = smallest_budget(shape_of(x, x, at::kFloat));
  set_attention_budget(least - 1);

  try {
    attention(x, x, x);
    FAIL() << "was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), testing::HasSubstr(format_bytes(least)));
    const std::string prefix = "pass --attention-budget ";
    ASSERT_THAT(error.hint(), testing::StartsWith(prefix));
    const std::string named = error.hint().substr(prefix.size());
    set_attention_budget(parse_bytes(named.substr(0, named.find(' '))));
  }
  EXPECT_NO_THROW(attention(x, x, x));
}

TEST(AttentionPlan, scratch_keeps_to_the_budget_and_does_not_grow_with_the_tokens) {
  AttentionShape shape{.heads = 32, .tokens = 20000, .keys = 20000, .dim = 128, .dtype = at::kBFloat16};
  for (const Bytes budget : {KiB(500), MiB(1), MiB(3), MiB(64), GiB(100)}) {
    for (const std::int64_t threads : {1, 2, 64}) {
      const Bytes scratch = attention_scratch(shape, threads, {.scratch = budget});
      EXPECT_LE(scratch, budget);
      AttentionShape longer = shape;
      longer.tokens = longer.keys = 100000;
      EXPECT_EQ(attention_scratch(longer, threads, {.scratch = budget}), scratch);
    }
  }
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
