#include "kernels/attention.h"

#include "support/cpu_path_scope.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <gtest/gtest.h>

#include <vector>

namespace sluice::kernels {
namespace {

struct EntryShape {
  std::int64_t batch, heads, kv_heads, tokens, keys, dim;
};

void PrintTo(const EntryShape& s, std::ostream* out) {
  *out << s.batch << "x" << s.heads << "/" << s.kv_heads << "x" << s.tokens << "x" << s.keys << "x" << s.dim;
}

// The last ones make several passes, which write the keys back.
const std::vector<EntryShape> kShapes = {{1, 2, 2, 5, 7, 8},      {2, 3, 3, 33, 513, 64},
                                         {1, 2, 1, 31, 31, 72},   {2, 2, 2, 40, 65, 128},
                                         {1, 1, 1, 2100, 40, 16}, {2, 4, 1, 20, 33, 6}};

class AttentionWithEntry : public ::testing::TestWithParam<EntryShape> {
 protected:
  void SetUp() override {
    at::manual_seed(3);
    const auto [batch, heads, kv_heads, tokens, keys, dim] = GetParam();
    auto projected = [batch = batch, dim = dim](std::int64_t rows, std::int64_t count) {
      return at::randn({batch, rows, count * dim}).unflatten(2, {count, dim}).transpose(1, 2);
    };
    q = projected(tokens, heads), k = projected(keys, kv_heads), v = projected(keys, kv_heads);
    options.queries = entry(batch, heads, tokens, dim);
    options.keys = entry(1, kv_heads, keys, dim);  // one table for all of the batch
  }

  static AttentionEntry entry(std::int64_t batch, std::int64_t heads, std::int64_t rows, std::int64_t dim) {
    const at::Tensor angles = at::randn({batch, heads, rows, dim / 2});
    return {.norm = at::rand({heads * dim}) + 0.5, .eps = 1e-6, .cos = angles.cos(), .sin = angles.sin()};
  }

  // Without writing over the keys of the test.
  at::Tensor run(at::ScalarType dtype) const {
    return attention(q.to(dtype), k.to(dtype, false, true), v.to(dtype), options);
  }

  at::Tensor q, k, v;
  AttentionOptions options;
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).abs().max() / b.to(at::kDouble).abs().max()).item<double>();
}

TEST_P(AttentionWithEntry, equals_norm_rotation_and_attention_one_after_the_other_on_every_path) {
  const at::Tensor expected = reference::attention(q, k, v, options);
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    EXPECT_LT(difference(run(at::kFloat), expected), 1e-5) << name(path);
    EXPECT_LT(difference(run(at::kBFloat16), expected), 0.03) << name(path);
  }
}

TEST_P(AttentionWithEntry, may_have_only_a_norm_or_only_a_rotation) {
  for (const bool norm : {true, false}) {
    AttentionOptions some = options;
    for (AttentionEntry* entry : {&some.queries, &some.keys}) {
      if (norm) {
        entry->cos.reset(), entry->sin.reset();
      } else {
        entry->norm.reset();
      }
    }

    const at::Tensor out = attention(q, k.clone(), v, some);

    EXPECT_LT(difference(out, reference::attention(q, k, v, some)), 1e-5) << (norm ? "norm" : "rotation");
  }
}

TEST_P(AttentionWithEntry, does_not_depend_on_the_budget_or_the_number_of_threads) {
  const int threads = at::get_num_threads();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor whole = run(dtype);
    for (const int count : {1, 3}) {
      at::set_num_threads(count);
      set_attention_budget(MiB(1));
      EXPECT_TRUE(at::equal(run(dtype), whole)) << count << " threads";
      set_attention_budget(AttentionLimits{}.scratch);
    }
    at::set_num_threads(threads);
  }
}

TEST_P(AttentionWithEntry, writes_over_the_queries_it_was_given) {
  const at::Tensor expected = run(at::kBFloat16);
  const at::Tensor queries = q.to(at::kBFloat16);
  const at::Tensor place = queries.transpose(1, 2).flatten(2);
  ASSERT_EQ(place.data_ptr(), queries.data_ptr());
  options.out = place;

  attention(queries, k.to(at::kBFloat16), v.to(at::kBFloat16), options);

  EXPECT_TRUE(at::equal(place, expected));
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionWithEntry, ::testing::ValuesIn(kShapes));

}  // namespace
}  // namespace sluice::kernels
