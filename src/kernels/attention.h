#pragma once
// Softmax attention in blocks of rows and keys: scratch is a few hundred kilobytes a thread at least and
// never depends on the number of tokens, so no score matrix exists.  Products are those of micro_product.h
// with f32 sums in both dtypes; softmax is the online one (running maximum and sum a row), in f32.

#include "kernels/attention_plan.h"
#include "kernels/workspace.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace sluice::kernels {

enum class Visible {
  every_key,
  up_to_own,  // row i sees keys j <= i: as many keys as rows
};

// What queries or keys become on their way in, in f32, rounded once: x / rms(x) · norm over all heads of a
// token together, then the two halves of each head rotate against each other.
struct AttentionEntry {
  at::Tensor norm;  // [heads · dim], any dtype; undefined: no norm
  double eps = 0;   // rms(x) = sqrt(mean(x²) + eps)
  at::Tensor cos;   // f32 [batch or 1, heads, rows, dim / 2]; undefined: no rotation
  at::Tensor sin;
};

struct AttentionOptions {
  at::Tensor bias;              // broadcasts to [batch, heads, tokens, keys]; undefined: none
  std::optional<double> scale;  // of the scores; empty: 1 / sqrt(dim)
  Visible visible = Visible::every_key;
  std::int64_t window = 0;  // with up_to_own: row i sees keys j > i - window only; 0: no such limit
  AttentionEntry queries, keys;
  at::Tensor
      gate;  // logits [batch, tokens, heads], multiply a head's result with 2 · sigmoid; undefined: none
  at::Tensor
      out;  // [batch, tokens, heads · dim], contiguous, for the result; may be q's memory; undefined: new
  Workspace* workspace = nullptr;  // scratch comes from it; nullptr: from one for this call
};

// softmax(q · kᵀ · scale + bias) · v.  q: [batch, heads, tokens, dim]; k, v: [batch, kv heads, keys, dim],
// where kv heads divides heads and head h uses kv head h / (heads / kv heads); all f32 or all bf16, strided
// as they like.  Returns [batch, tokens, heads · dim].  A row whose scores are all -inf gives zeros.  Panels
// of keys that no row of a block sees are not computed.  Results depend neither on the number of threads nor
// on the budget.  Beside the scratch of the budget, an entry with a norm takes 4 bytes a token.  Keys with an
// entry may be overwritten with what they become: where several passes read them.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options);
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& bias = {});

// The limits of every attention of the process from now on, like LibTorch's number of threads; any thread may
// ask, to change them is for the one that computes.  What fits no attention at all is refused by the
// attention, which knows its sizes.
void set_attention_budget(Bytes scratch);
AttentionLimits attention_limits();

namespace reference {
// The plain twin: LibTorch's operators.  Takes `out` and `workspace` for nothing; overwrites nothing.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options = {});
}  // namespace reference

}  // namespace sluice::kernels
