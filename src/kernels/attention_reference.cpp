#include "kernels/attention.h"

#include <ATen/ATen.h>

#include <limits>

namespace sluice::kernels::reference {
namespace {

// Bias and what rows do not see, as one tensor that is added; undefined: nothing.
std::optional<at::Tensor> added_to_scores(const at::Tensor& q, const at::Tensor& k,
                                          const AttentionOptions& options) {
  at::Tensor mask = options.bias;
  if (options.visible == Visible::up_to_own) {
    at::Tensor seen = at::ones({q.size(2), k.size(2)}, at::kBool).tril_();
    if (options.window > 0) seen.triu_(1 - options.window);
    const at::Tensor hidden =
        at::zeros(seen.sizes(), at::kFloat).masked_fill_(~seen, -std::numeric_limits<float>::infinity());
    mask = mask.defined() ? mask + hidden : hidden;
  }
  if (!mask.defined()) return std::nullopt;
  return mask.to(q.scalar_type());
}

// x: [batch, heads, rows, dim].
at::Tensor entered(const at::Tensor& x, const AttentionEntry& entry) {
  at::Tensor y = x.transpose(1, 2).flatten(2);  // [batch, rows, width]
  if (entry.norm.defined()) y = at::rms_norm(y, {y.size(2)}, entry.norm.to(y.scalar_type()), entry.eps);
  at::Tensor heads = y.unflatten(2, {x.size(1), x.size(3)}).transpose(1, 2);
  if (!entry.cos.defined()) return heads;
  const at::Tensor halves = heads.to(at::kFloat).unflatten(3, {2, -1});
  const at::Tensor first = halves.select(3, 0), second = halves.select(3, 1);
  return at::stack({first * entry.cos - second * entry.sin, second * entry.cos + first * entry.sin}, 3)
      .flatten(3)
      .to(x.scalar_type());
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options) {
  const at::Tensor attended =
      at::scaled_dot_product_attention(entered(q, options.queries), entered(k, options.keys), v,
                                       added_to_scores(q, k, options), /*dropout_p=*/0.0,
                                       /*is_causal=*/false, options.scale,
                                       /*enable_gqa=*/k.size(1) != q.size(1));
  at::Tensor out = attended.transpose(1, 2);  // [batch, tokens, heads, dim]
  if (options.gate.defined())
    out = (out.to(at::kFloat) * (at::sigmoid(options.gate.to(at::kFloat)) * 2).unsqueeze(3))
              .to(q.scalar_type());
  return out.flatten(2);
}

}  // namespace sluice::kernels::reference
