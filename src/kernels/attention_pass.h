#pragma once
// One task of an attention: some rows of one head through all keys.  Pure arithmetic over what lies in
// memory; any thread, with scratch of its own.

#include "kernels/attention_plan.h"
#include "kernels/entry_rows.h"
#include "kernels/softmax_rows.h"

#include <cstddef>
#include <cstdint>

namespace sluice::kernels {

template <typename T>
struct HeadRows {  // [batch, heads, rows, dim], the last axis contiguous
  T* data = nullptr;
  std::int64_t batch_stride = 0, head_stride = 0, row_stride = 0;

  T* row(std::int64_t batch, std::int64_t head, std::int64_t index) const {
    return data ? data + batch * batch_stride + head * head_stride + index * row_stride : nullptr;
  }
};

template <typename T>  // float or Bf16
struct EntryOperand {  // queries or keys and what becomes of them on their way in
  HeadRows<const T> x;
  std::int64_t rows = 0, dim = 0;
  const float* factors = nullptr;  // [batch, rows], 1 / rms; nullptr: no norm
  const float* weight = nullptr;   // [heads, dim]
  HeadRows<const float> cos, sin;  // data nullptr: no rotation

  EntryRows<T> at(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t count) const;
};

struct KeyMask {  // which keys a row sees: a range, the same for every head
  bool up_to_own = false;
  std::int64_t window = 0;  // 0: no such limit

  SoftmaxSpan of_row(std::int64_t row, std::int64_t keys) const;
  // What any of the rows [row, row + rows) sees.
  SoftmaxSpan of_rows(std::int64_t row, std::int64_t rows, std::int64_t keys) const;
};

template <typename B>
struct ScoreBias {  // broadcast to [batch, heads, tokens, keys]
  HeadRows<const B> rows;
  std::int64_t key_stride = 0;
};

template <typename T>
struct AttentionOperands {
  EntryOperand<T> q, k;
  HeadRows<const T> v;
  std::int64_t heads_a_key = 1;  // heads that use one head of keys
  float scale = 1;
  ScoreBias<T> bias;           // of q's dtype; data nullptr: none
  ScoreBias<float> wide_bias;  // or f32
  KeyMask mask;
  HeadRows<const T> gate;  // [batch, heads, tokens, 1] logits: times 2 sigmoid(logit); data nullptr: none
  HeadRows<T> out;         // may be q's own memory
};

// Rows [row, row + plan.pass_rows) of a head, as far as there are any.  scratch: plan.scratch.bytes bytes, at
// an address divisible by 64.
template <typename T>
void attention_pass(const AttentionOperands<T>& operands, const AttentionPlan& plan, std::int64_t batch,
                    std::int64_t head, std::int64_t row, std::byte* scratch);

}  // namespace sluice::kernels
