#pragma once
// Softmax attention in blocks of rows and keys: scratch is a few hundred kilobytes a thread at least and
// never depends on the number of tokens, so no score matrix exists.  Products are oneDNN's small blocked ones
// with f32 results in both dtypes; softmax is the online one (running maximum and sum a row), in f32.

#include "kernels/attention_plan.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace sluice::kernels {

enum class Visible {
  every_key,
  up_to_own,  // row i sees keys j <= i: as many keys as rows
};

struct AttentionOptions {
  at::Tensor bias;              // broadcasts to [batch, heads, tokens, keys]; undefined: none
  std::optional<double> scale;  // of the scores; empty: 1 / sqrt(dim)
  Visible visible = Visible::every_key;
  std::int64_t window = 0;  // with up_to_own: row i sees keys j > i - window only; 0: no such limit
};

// softmax(q · kᵀ · scale + bias) · v.  q: [batch, heads, tokens, dim]; k, v: [batch, kv heads, keys, dim],
// where kv heads divides heads and head h uses kv head h / (heads / kv heads); all f32 or all bf16, strided
// as they like.  Returns [batch, tokens, heads · dim].  A row whose scores are all -inf gives zeros.  Blocks
// in which no row sees a key are not computed.  Results depend neither on the number of threads nor on the
// budget.
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
// The plain twin: LibTorch's own.  Also what attention() takes on processors without AVX-512 (bf16: without
// its bf16 products), where the small products would be emulated.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options = {});
}  // namespace reference

}  // namespace sluice::kernels
