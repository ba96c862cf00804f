#pragma once
// How an attention is cut into passes so that its scratch keeps to a budget.  A pass takes some rows of one
// head through all keys, a block of keys at a time: more rows a pass spare packing the keys again, and cost
// the sums of these rows.  What a row's result is computed from, in which order, never depends on the cut.

#include <sluice/units.h>

#include <ATen/core/ScalarType.h>

#include <cstdint>

namespace sluice::kernels {

// Scores of one block of rows stay in a first-level cache, the packed keys and values of a block of keys in a
// second-level one.
inline constexpr std::int64_t kAttentionRows = 12;
inline constexpr std::int64_t kAttentionKeys = 512;

struct AttentionLimits {
  Bytes scratch = MiB(64);  // of all threads together: what 40 take at most in f32 with heads of 128
};

struct AttentionShape {
  std::int64_t heads = 0;  // of all batch entries
  std::int64_t tokens = 0;
  std::int64_t keys = 0;
  std::int64_t dim = 0;
  at::ScalarType dtype = at::kFloat;  // f32 or bf16
};

struct AttentionScratch {  // offsets and bytes of one worker's buffers
  std::int64_t keys = 0, values = 0, entry = 0, queries = 0, scores = 0, bias = 0, parts = 0, sums = 0,
               states = 0;
  std::int64_t bytes = 0;
  std::int64_t depth = 0;   // values of a query and a key, whole words
  std::int64_t width = 0;   // values of a row of sums, whole panels
  std::int64_t stride = 0;  // values from one row of scores to the next
};

struct AttentionPlan {
  std::int64_t pass_rows = 0;  // of one head, in one pass over the keys
  std::int64_t passes = 0;     // of one head
  std::int64_t workers = 0;    // threads that have scratch
  AttentionScratch scratch;    // of each
};

// Error(does_not_fit), naming the smallest budget, where not one worker with one block of rows fits.
AttentionPlan plan_attention(const AttentionShape& shape, std::int64_t threads, AttentionLimits limits);

// Bytes of scratch that an attention takes, for a plan of memory.
Bytes attention_scratch(const AttentionShape& shape, std::int64_t threads, AttentionLimits limits);

}  // namespace sluice::kernels
