#include "kernels/attention.h"

#include "kernels/pack.h"
#include "kernels/small_products.h"
#include "kernels/softmax_rows.h"
#include "kernels/tasks.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>

namespace sluice::kernels {
namespace {

template <typename T>
struct Rows {  // a tensor [batch, heads, rows, …] with a contiguous last axis
  const T* data;
  std::int64_t batch_stride, head_stride, row_stride;

  explicit Rows(const at::Tensor& x)
      : data(x.const_data_ptr<T>()),
        batch_stride(x.stride(0)),
        head_stride(x.stride(1)),
        row_stride(x.stride(2)) {}
  const T* row(std::int64_t batch, std::int64_t head, std::int64_t index) const {
    return data + batch * batch_stride + head * head_stride + index * row_stride;
  }
};

// Which keys a row sees: a range, the same for every head.
struct Mask {
  Visible visible;
  std::int64_t window;

  struct Range {
    std::int64_t begin, end;
  };
  Range of_row(std::int64_t row, std::int64_t keys) const {
    if (visible == Visible::every_key) return {0, keys};
    return {window > 0 ? std::max<std::int64_t>(0, row - window + 1) : 0, std::min(row + 1, keys)};
  }
  // What any of the rows [row, row + rows) sees.
  Range of_rows(std::int64_t row, std::int64_t rows, std::int64_t keys) const {
    return {of_row(row, keys).begin, of_row(row + rows - 1, keys).end};
  }
};

template <typename T>
class Attention {
 public:
  Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionOptions& options,
            at::Tensor& out)
      : q_(q),
        k_(k),
        v_(v),
        bias_(options.bias),
        mask_{options.visible, options.window},
        out_(out.mutable_data_ptr<T>()),
        heads_(q.size(1)),
        heads_a_key_(q.size(1) / k.size(1)),
        tokens_(q.size(2)),
        keys_(k.size(2)),
        dim_(q.size(3)),
        scale_(static_cast<float>(options.scale.value_or(1 / std::sqrt(static_cast<double>(dim_))))),
        plan_(plan_attention({.heads = q.size(0) * heads_,
                              .tokens = tokens_,
                              .keys = keys_,
                              .dim = dim_,
                              .dtype = q.scalar_type()},
                             at::get_num_threads(), attention_limits())),
        tasks_(q.size(0) * heads_ * plan_.passes) {}

  void run() {
    const at::Tensor scratch =
        at::empty({plan_.workers, plan_.scratch.bytes}, at::TensorOptions().dtype(at::kByte));
    each_task(plan_.workers, tasks_, [&](std::int64_t worker, std::int64_t task) {
      const Buffers buffers(scratch.data_ptr<std::uint8_t>() + worker * plan_.scratch.bytes, plan_.scratch);
      const std::int64_t head = task / plan_.passes;
      pass(head / heads_, head % heads_, task % plan_.passes * plan_.pass_rows, buffers);
      at::native::cpublas::brgemm_release(kPaired);
    });
  }

 private:
  static constexpr bool kPaired = !std::is_same_v<T, float>;

  struct Buffers {
    T *keys, *values, *queries, *weights;
    float *scores, *sums, *bias;
    SoftmaxState* states;

    Buffers(std::uint8_t* base, const AttentionScratch& at)
        : keys(reinterpret_cast<T*>(base + at.keys)),
          values(reinterpret_cast<T*>(base + at.values)),
          queries(reinterpret_cast<T*>(base + at.queries)),
          weights(reinterpret_cast<T*>(base + at.weights)),
          scores(reinterpret_cast<float*>(base + at.scores)),
          sums(reinterpret_cast<float*>(base + at.sums)),
          bias(reinterpret_cast<float*>(base + at.bias)),
          states(reinterpret_cast<SoftmaxState*>(base + at.states)) {
      std::fill_n(bias, (at.bytes - at.bias) / 4, 0.0F);
    }
  };

  struct Block {  // rows [row, row + rows) of one head, and where their pass begins
    std::int64_t batch, head, row, rows, pass_row;
  };

  // Rows from `row` on through all keys.
  void pass(std::int64_t batch, std::int64_t head, std::int64_t row, const Buffers& buffers) const {
    const std::int64_t rows = std::min(plan_.pass_rows, tokens_ - row);
    for (std::int64_t i = 0; i < rows; ++i) {
      std::copy_n(q_.row(batch, head, row + i), dim_, buffers.queries + i * dim_);
      buffers.states[i] = SoftmaxState{};
    }
    std::fill_n(buffers.sums, rows * dim_, 0.0F);
    const auto seen = mask_.of_rows(row, rows, keys_);
    for (std::int64_t key = seen.begin / kAttentionKeys * kAttentionKeys; key < seen.end;
         key += kAttentionKeys) {
      const std::int64_t columns = std::min(kAttentionKeys, keys_ - key);
      const std::int64_t kv_head = head / heads_a_key_;
      pack_keys(as_packed(k_.row(batch, kv_head, key)), k_.row_stride, columns, dim_,
                as_packed(buffers.keys));
      pack_values(as_packed(v_.row(batch, kv_head, key)), v_.row_stride, columns, dim_,
                  as_packed(buffers.values));
      for (std::int64_t i = 0; i < rows; i += plan_.block_rows)
        attend({batch, head, row + i, std::min(plan_.block_rows, rows - i), row}, key, columns, buffers);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const float sum = buffers.states[i].sum;
      T* to = out_ + ((batch * tokens_ + row + i) * heads_ + head) * dim_;
      write_row(buffers.sums + i * dim_, sum == 0 ? 0 : 1 / sum, to);
    }
  }

  // A block of rows and the packed keys [key, key + columns).
  void attend(const Block& block, std::int64_t key, std::int64_t columns, const Buffers& buffers) const {
    const auto seen = mask_.of_rows(block.row, block.rows, keys_);
    if (seen.end <= key || seen.begin >= key + columns) return;
    const std::int64_t stride = (columns + kLanes - 1) / kLanes * kLanes, first = block.row - block.pass_row;
    float* sums = buffers.sums + first * dim_;
    at::native::cpublas::brgemm(block.rows, columns, dim_, dim_, columns, stride, /*add_C=*/false,
                                buffers.queries + first * dim_, buffers.keys, buffers.scores, kPaired);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const float* bias = bias_row(block.batch, block.head, block.row + i, key, columns, buffers);
      const float factor = softmax_row(buffers.scores + i * stride, columns, scale_, bias,
                                       buffers.states[first + i], as_bits(buffers.weights + i * stride));
      if (factor != 1) scale_row(sums + i * dim_, dim_, factor, sums + i * dim_);
    }
    at::native::cpublas::brgemm(block.rows, dim_, kPaired ? (columns + 1) / 2 * 2 : columns, stride, dim_,
                                dim_,
                                /*add_C=*/true, buffers.weights, buffers.values, sums, kPaired);
  }

  static const float* as_packed(const float* p) { return p; }
  static float* as_packed(float* p) { return p; }
  static const Bf16* as_packed(const at::BFloat16* p) { return reinterpret_cast<const Bf16*>(p); }
  static Bf16* as_packed(at::BFloat16* p) { return reinterpret_cast<Bf16*>(p); }

  // The weights of f32 are written over the scores.
  static Bf16* as_bits(at::BFloat16* p) { return reinterpret_cast<Bf16*>(p); }
  static Bf16* as_bits(float*) { return nullptr; }
  void write_row(const float* row, float factor, float* to) const { scale_row(row, dim_, factor, to); }
  void write_row(const float* row, float factor, at::BFloat16* to) const {
    scale_row(row, dim_, factor, as_bits(to));
  }

  // Bias of a row's columns, -inf where it does not see the key; nullptr: zeros.
  const float* bias_row(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key,
                        std::int64_t columns, const Buffers& buffers) const {
    const auto seen = mask_.of_row(row, keys_);
    const std::int64_t begin = std::clamp<std::int64_t>(seen.begin - key, 0, columns);
    const std::int64_t end = std::clamp<std::int64_t>(seen.end - key, begin, columns);
    if (!bias_.defined() && begin == 0 && end == columns) return nullptr;

    constexpr float kNever = -std::numeric_limits<float>::infinity();
    std::fill_n(buffers.bias, columns, kNever);
    if (!bias_.defined()) {
      std::fill_n(buffers.bias + begin, end - begin, 0.0F);
      return buffers.bias;
    }
    const T* from = bias_.const_data_ptr<T>() + batch * bias_.stride(0) + head * bias_.stride(1) +
                    row * bias_.stride(2) + key * bias_.stride(3);
    for (std::int64_t i = begin; i < end; ++i)
      buffers.bias[i] = static_cast<float>(from[i * bias_.stride(3)]);
    return buffers.bias;
  }

  Rows<T> q_, k_, v_;
  at::Tensor bias_;  // expanded to [batch, heads, tokens, keys]
  Mask mask_;
  T* out_;
  std::int64_t heads_, heads_a_key_, tokens_, keys_, dim_;
  float scale_;
  AttentionPlan plan_;
  std::int64_t tasks_;
};

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

std::atomic<Bytes> budget = AttentionLimits{}.scratch;

// What the options say of a shape that has it.
void require_fitting(const at::Tensor& q, const at::Tensor& k, const AttentionOptions& options) {
  const bool heads_fit = k.size(1) > 0 && q.size(1) % k.size(1) == 0;
  if (heads_fit && (options.visible == Visible::every_key || q.size(2) == k.size(2))) return;
  throw Error(ErrorKind::internal, fmt::format("an attention of {} rows, {} heads over {} keys, {} heads",
                                               q.size(2), q.size(1), k.size(2), k.size(1)));
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  return attention(q, k, v, AttentionOptions{.bias = bias});
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options) {
  require_fitting(q, k, options);
  if (!has_small_products(q.scalar_type(), q.size(3)) || q.numel() == 0 || k.size(2) == 0)
    return reference::attention(q, k, v, options);
  AttentionOptions expanded = options;
  if (options.bias.defined())
    expanded.bias = options.bias.to(q.scalar_type()).expand({q.size(0), q.size(1), q.size(2), k.size(2)});
  at::Tensor out = at::empty({q.size(0), q.size(2), q.size(1) * q.size(3)}, q.options());
  const at::Tensor queries = with_contiguous_rows(q), keys = with_contiguous_rows(k),
                   values = with_contiguous_rows(v);
  if (q.scalar_type() == at::kFloat) {
    Attention<float>(queries, keys, values, expanded, out).run();
  } else {
    Attention<at::BFloat16>(queries, keys, values, expanded, out).run();
  }
  return out;
}

void set_attention_budget(Bytes scratch) {
  budget = scratch;
}

AttentionLimits attention_limits() {
  return {.scratch = budget};
}

namespace reference {
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

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options) {
  return at::scaled_dot_product_attention(q, k, v, added_to_scores(q, k, options), /*dropout_p=*/0.0,
                                          /*is_causal=*/false, options.scale,
                                          /*enable_gqa=*/k.size(1) != q.size(1))
      .transpose(1, 2)
      .flatten(2);
}

}  // namespace reference
}  // namespace sluice::kernels
