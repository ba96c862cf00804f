#include "kernels/attention.h"

#include "support/cpu_path_scope.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace sluice::kernels {
namespace {

struct Shape {
  std::int64_t batch, heads, tokens, keys, dim;
};

// Sizes around the blocks (12 rows, 512 keys), the panels (32 keys, 32 columns), the lanes (16) and pairs of
// keys, odd ones, and those of the models.
const std::vector<Shape> kShapes = {{1, 2, 5, 7, 8},      {2, 3, 128, 512, 16}, {1, 1, 129, 513, 64},
                                    {2, 2, 60, 1025, 24}, {1, 4, 26, 1024, 64}, {1, 2, 256, 26, 128},
                                    {1, 1, 1, 1, 2},      {3, 1, 17, 31, 4},    {1, 2, 31, 33, 72},
                                    {1, 1, 33, 513, 80},  {2, 1, 13, 47, 3},    {1, 2, 1, 530, 128}};

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

class AttentionOf : public ::testing::TestWithParam<Shape> {
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

TEST_P(AttentionOf, f32_is_the_formula_on_every_path) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    EXPECT_LT(difference(attention(q, k, v), exact(q, k, v)), 2e-6) << name(path);
    EXPECT_LT(difference(attention(q, k, v, bias), exact(q, k, v, bias)), 2e-6) << name(path);
  }
}

TEST_P(AttentionOf, bf16_is_as_near_to_the_formula_as_its_plain_twin_on_every_path) {
  const auto b = at::kBFloat16;
  const at::Tensor qb = q.to(b), kb = k.to(b), vb = v.to(b);
  for (const at::Tensor& added : {at::Tensor(), bias, bias.to(b)}) {
    const at::Tensor truth = exact(qb, kb, vb, added);
    const double plain = difference(reference::attention(qb, kb, vb, {.bias = added}), truth);
    for (const CpuPath path : cpu_paths()) {
      const testing::CpuPathScope scope(path);

      const double ours = difference(attention(qb, kb, vb, added), truth);

      EXPECT_LT(ours, 0.01) << name(path);
      EXPECT_LT(ours, 1.5 * plain + 1e-3) << name(path);
    }
  }
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

TEST_P(AttentionOf, shows_non_finite_input_on_every_path) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const CpuPath path : cpu_paths()) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const testing::CpuPathScope scope(path);
      at::Tensor broken = v.to(dtype, /*non_blocking=*/false, /*copy=*/true);
      const at::Tensor queries = q.to(dtype), keys = k.to(dtype);
      broken.select(2, 0).fill_(std::numeric_limits<float>::quiet_NaN());
      EXPECT_TRUE(at::isnan(attention(queries, keys, broken)).all().item<bool>()) << name(path);
      EXPECT_TRUE(at::isnan(attention(at::full_like(queries, NAN), keys, keys)).all().item<bool>())
          << name(path);
      broken.fill_(1).select(2, 0).fill_(infinity);
      EXPECT_FALSE(at::isfinite(attention(at::zeros_like(queries), keys, broken)).any().item<bool>())
          << name(path);
    }
  }
}

TEST_P(AttentionOf, takes_rows_at_any_distance) {
  auto spread = [](const at::Tensor& x) {  // every second value of an axis of its own
    return at::stack({x, x + 1}, 3).transpose(3, 4).select(4, 0);
  };

  const at::Tensor out = attention(spread(q), spread(k), spread(v));

  EXPECT_TRUE(at::equal(out, attention(q, k, v)));
}

TEST_P(AttentionOf, writes_where_it_is_told_even_over_the_queries) {
  const at::Tensor expected = attention(q, k, v);
  Workspace workspace;
  const at::Tensor place = q.transpose(1, 2).flatten(2);
  ASSERT_EQ(place.data_ptr(), q.data_ptr());

  const at::Tensor out = attention(q, k, v, {.out = place, .workspace = &workspace});

  EXPECT_EQ(out.data_ptr(), place.data_ptr());
  EXPECT_TRUE(at::equal(out, expected));
}

TEST_P(AttentionOf, multiplies_a_head_of_a_row_with_twice_the_sigmoid_of_its_gate) {
  const auto [batch, heads, tokens, keys, dim] = GetParam();
  const at::Tensor gate = at::randn({batch, tokens, heads}) * 3;
  const at::Tensor factor = (at::sigmoid(gate.to(at::kDouble)) * 2).unsqueeze(3);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor gated = attention(q.to(dtype), k.to(dtype), v.to(dtype), {.gate = gate.to(dtype)});

    const at::Tensor plain = exact(q.to(dtype), k.to(dtype), v.to(dtype)).unflatten(2, {heads, dim});
    EXPECT_LT(difference(gated, (plain * factor).flatten(2)), dtype == at::kFloat ? 2e-6 : 0.02);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOf, ::testing::ValuesIn(kShapes));

TEST(Attention, masked_keys_have_no_part_in_the_result) {
  at::manual_seed(1);
  const at::Tensor q = at::randn({1, 2, 20, 8}), k = at::randn({1, 2, 600, 8}), v = at::randn({1, 2, 600, 8});
  at::Tensor mask = at::zeros({1, 1, 1, 600});
  mask.narrow(3, 100, 500).fill_(-std::numeric_limits<float>::infinity());

  const at::Tensor masked = attention(q, k, v, mask);

  EXPECT_LT(difference(masked, attention(q, k.narrow(2, 0, 100), v.narrow(2, 0, 100))), 1e-6);
}

TEST(Attention, gives_zeros_to_rows_that_see_no_key_and_only_to_them) {
  const at::Tensor x = at::ones({1, 1, 3, 8});
  at::Tensor bias = at::zeros({1, 1, 3, 3});
  bias.select(2, 1).fill_(-std::numeric_limits<float>::infinity());
  for (const CpuPath path : cpu_paths()) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const testing::CpuPathScope scope(path);

      const at::Tensor out = attention(x.to(dtype), x.to(dtype), x.to(dtype), bias);

      EXPECT_TRUE(at::equal(out.select(1, 1), at::zeros({1, 8}, dtype))) << name(path);
      EXPECT_TRUE(at::equal(out.select(1, 2), at::ones({1, 8}, dtype))) << name(path);
    }
  }
}

TEST(Attention, gives_zeros_where_there_are_no_keys) {
  const at::Tensor q = at::ones({1, 2, 3, 8}), none = at::ones({1, 2, 0, 8});

  EXPECT_TRUE(at::equal(attention(q, none, none), at::zeros({1, 3, 16})));
}

TEST(Attention, takes_nothing_but_its_scratch_after_the_first_time) {
  const at::Tensor x = at::randn({1, 2, 700, 64});
  Workspace workspace;
  const AttentionOptions options{.workspace = &workspace};
  attention(x, x, x, options);
  const Bytes first = workspace.most_used(), size = workspace.size();

  attention(x, x, x, options);

  EXPECT_GE(first, attention_scratch(shape_of(x, x, at::kFloat), at::get_num_threads(), attention_limits()));
  EXPECT_EQ(workspace.most_used(), first);
  EXPECT_EQ(workspace.size(), size);
}

// Mean distance to the formula, against LibTorch's own: input of models, where a few keys stand out.
TEST(Attention, is_at_least_as_near_to_the_formula_as_LibTorch_is) {
  at::manual_seed(11);
  for (const double spread : {0.5, 1.0, 3.0}) {
    for (const auto dtype : {at::kFloat, at::kBFloat16}) {
      const at::Tensor q = (at::randn({1, 4, 300, 128}) * spread).to(dtype);
      const at::Tensor k = at::randn({1, 4, 1500, 128}).to(dtype);
      const at::Tensor v = (at::randn({1, 4, 1500, 128}) + 0.5).to(dtype);
      const at::Tensor truth = exact(q, k, v);
      auto error = [&](const at::Tensor& x) {
        return (x.to(at::kDouble) - truth).abs().mean().item<double>();
      };
      const double theirs = error(reference::attention(q, k, v));
      for (const CpuPath path : cpu_paths()) {
        const testing::CpuPathScope scope(path);

        const double ours = error(attention(q, k, v));

        // 0.99 of theirs at most here (bf16 0.9997: both only round the result); theirs depends on the
        // machine.
        EXPECT_LE(ours, 1.02 * theirs) << name(path) << ", " << dtype << ", spread " << spread;
      }
    }
  }
}

struct MaskedShape {
  std::int64_t heads, kv_heads, tokens, window;
};

void PrintTo(const MaskedShape& s, std::ostream* out) {
  *out << s.heads << " heads over " << s.kv_heads << ", " << s.tokens << " tokens, window " << s.window;
}

class MaskedAttention : public ::testing::TestWithParam<MaskedShape> {
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
                         ::testing::Values(MaskedShape{2, 2, 7, 0}, MaskedShape{4, 2, 300, 0},
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
    EXPECT_THAT(error.what(), ::testing::HasSubstr(format_bytes(least)));
    const std::string prefix = "pass --attention-budget ";
    ASSERT_THAT(error.hint(), ::testing::StartsWith(prefix));
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

}  // namespace
}  // namespace sluice::kernels
