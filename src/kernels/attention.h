#pragma once
// Softmax attention in blocks, so that no more than a few hundred kilobytes of scores exist a thread whatever
// the number of tokens.  Products are oneDNN's small blocked ones with f32 results in both dtypes; softmax is
// the online one (running maximum and sum a row), in f32.

#include <ATen/core/Tensor.h>

namespace sluice::kernels {

// softmax(q · kᵀ / sqrt(dim) + bias) · v.  q: [batch, heads, tokens, dim], k, v: [batch, heads, keys, dim],
// all f32 or all bf16, the last axis contiguous, the others strided as they like; bias broadcasts to [batch,
// heads, tokens, keys], undefined: none.  Returns [batch, tokens, heads · dim].  A row whose scores are all
// -inf gives zeros.  Results do not depend on the number of threads.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& bias = {});

namespace reference {
// The plain twin: LibTorch's own.  Also what attention() takes on processors without AVX-512 (bf16: without
// its bf16 products), where the small products would be emulated.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const at::Tensor& bias = {});
}  // namespace reference

}  // namespace sluice::kernels
