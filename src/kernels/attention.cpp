#include "kernels/attention.h"

#include "kernels/softmax_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

namespace sluice::kernels {
namespace {

// Scores of one block: 128 x 512 f32 are 256 KiB, which with the operands fit a second-level cache of 1 MiB.
constexpr std::int64_t kBlockRows = 128;
constexpr std::int64_t kBlockKeys = 512;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

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

// kᵀ of a block of keys, [dim, keys]; for bf16 pairs of neighbouring values of a key stay together, [dim / 2,
// keys, 2], as the processor's bf16 products want their second operand.
template <typename T>
void pack_keys(const T* from, std::int64_t row_stride, std::int64_t keys, std::int64_t dim, T* to) {
  constexpr std::int64_t kTogether = 4 / static_cast<std::int64_t>(sizeof(T));
  constexpr std::int64_t kTile = 16;  // of both axes: a tile's lines stay in the first-level cache
  const std::int64_t words = dim / kTogether;
  for (std::int64_t word = 0; word < words; word += kTile) {
    for (std::int64_t key = 0; key < keys; ++key) {
      const T* source = from + key * row_stride;
      for (std::int64_t w = word; w < std::min(word + kTile, words); ++w)
        std::memcpy(to + (w * keys + key) * kTogether, source + w * kTogether, 4);
    }
  }
}

// A block of values, [keys, dim]; for bf16 pairs of neighbouring keys lie together, [keys / 2, dim, 2], an
// odd last key beside zeros.
template <typename T>
void pack_values(const T* from, std::int64_t row_stride, std::int64_t keys, std::int64_t dim, T* to) {
  if constexpr (std::is_same_v<T, float>) {
    for (std::int64_t key = 0; key < keys; ++key) std::copy_n(from + key * row_stride, dim, to + key * dim);
  } else {
    for (std::int64_t key = 0; key < keys; key += 2) {
      const T* first = from + key * row_stride;
      const T* second = key + 1 < keys ? first + row_stride : nullptr;
      T* pair = to + key * dim;
      for (std::int64_t i = 0; i < dim; ++i) {
        pair[2 * i] = first[i];
        pair[2 * i + 1] = second ? second[i] : T(0);
      }
    }
  }
}

template <typename T>
class Attention {
 public:
  Attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias,
            at::Tensor& out)
      : q_(q),
        k_(k),
        v_(v),
        bias_(bias),
        out_(out.mutable_data_ptr<T>()),
        batch_(q.size(0)),
        heads_(q.size(1)),
        tokens_(q.size(2)),
        keys_(k.size(2)),
        dim_(q.size(3)),
        scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(dim_)))) {}

  void run() {
    const std::int64_t pairs = batch_ * heads_, threads = at::get_num_threads();
    const std::int64_t row_blocks = (tokens_ + kBlockRows - 1) / kBlockRows;
    // Two tasks a thread if heads alone do not give them; each task packs its head's keys and values anew.
    const std::int64_t splits = std::clamp<std::int64_t>((2 * threads + pairs - 1) / pairs, 1, row_blocks);
    const std::int64_t blocks_a_split = (row_blocks + splits - 1) / splits;
    const Layout layout(*this);
    at::Tensor scratch = at::empty({threads, layout.bytes}, at::TensorOptions().dtype(at::kByte));

    at::parallel_for(0, pairs * splits, 1, [&](std::int64_t begin, std::int64_t end) {
      const Buffers buffers(scratch.data_ptr<std::uint8_t>() + at::get_thread_num() * layout.bytes, layout);
      for (std::int64_t task = begin; task < end; ++task) {
        const std::int64_t pair = task / splits, first = task % splits * blocks_a_split;
        pack_head(pair / heads_, pair % heads_, buffers);
        for (std::int64_t block = first; block < std::min(first + blocks_a_split, row_blocks); ++block)
          attend(pair / heads_, pair % heads_, block * kBlockRows, buffers);
      }
      at::native::cpublas::brgemm_release(kPaired);
    });
  }

 private:
  static constexpr bool kPaired = !std::is_same_v<T, float>;

  struct Layout {  // offsets of one thread's buffers
    std::int64_t keys, values, queries, scores, weights, sums, bias, bytes;

    explicit Layout(const Attention& a) {
      const std::int64_t padded_keys = round_up(a.keys_, kLanes);
      const std::int64_t columns = std::min(padded_keys, kBlockKeys);
      std::int64_t at = 0;
      auto take = [&](std::int64_t bytes) { return std::exchange(at, at + round_up(bytes, 64)); };
      constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
      keys = take(a.keys_ * a.dim_ * kSize);
      values = take(padded_keys * a.dim_ * kSize);
      queries = take(kBlockRows * a.dim_ * kSize);
      scores = take(kBlockRows * columns * 4);
      weights = kPaired ? take(kBlockRows * columns * 2) : scores;
      sums = take(kBlockRows * a.dim_ * 4);
      bias = take(columns * 4);
      bytes = at;
    }
  };

  struct Buffers {
    T *keys, *values, *queries, *weights;
    float *scores, *sums, *bias;

    Buffers(std::uint8_t* base, const Layout& layout)
        : keys(reinterpret_cast<T*>(base + layout.keys)),
          values(reinterpret_cast<T*>(base + layout.values)),
          queries(reinterpret_cast<T*>(base + layout.queries)),
          weights(reinterpret_cast<T*>(base + layout.weights)),
          scores(reinterpret_cast<float*>(base + layout.scores)),
          sums(reinterpret_cast<float*>(base + layout.sums)),
          bias(reinterpret_cast<float*>(base + layout.bias)) {
      std::fill_n(bias, (layout.bytes - layout.bias) / 4, 0.0F);
    }
  };

  void pack_head(std::int64_t batch, std::int64_t head, const Buffers& to) const {
    for (std::int64_t key = 0; key < keys_; key += kBlockKeys) {
      const std::int64_t count = std::min(kBlockKeys, keys_ - key);
      pack_keys(k_.row(batch, head, key), k_.row_stride, count, dim_, to.keys + key * dim_);
      pack_values(v_.row(batch, head, key), v_.row_stride, count, dim_, to.values + key * dim_);
    }
  }

  void attend(std::int64_t batch, std::int64_t head, std::int64_t row, const Buffers& buffers) const {
    const std::int64_t rows = std::min(kBlockRows, tokens_ - row);
    for (std::int64_t i = 0; i < rows; ++i)
      std::copy_n(q_.row(batch, head, row + i), dim_, buffers.queries + i * dim_);
    SoftmaxState states[kBlockRows];
    for (std::int64_t key = 0; key < keys_; key += kBlockKeys) {
      const std::int64_t columns = std::min(kBlockKeys, keys_ - key);
      const std::int64_t stride = round_up(columns, kLanes);
      at::native::cpublas::brgemm(rows, columns, dim_, dim_, columns, stride, /*add_C=*/false,
                                  buffers.queries, buffers.keys + key * dim_, buffers.scores, kPaired);
      for (std::int64_t i = 0; i < rows; ++i) {
        const float* bias = bias_row(batch, head, row + i, key, columns, buffers);
        const float factor = softmax_row(buffers.scores + i * stride, columns, scale_, bias, states[i],
                                         as_bits(buffers.weights + i * stride));
        if (key > 0 && factor != 1) scale_row(buffers.sums + i * dim_, dim_, factor, buffers.sums + i * dim_);
      }
      at::native::cpublas::brgemm(rows, dim_, kPaired ? round_up(columns, 2) : columns, stride, dim_, dim_,
                                  /*add_C=*/key > 0, buffers.weights, buffers.values + key * dim_,
                                  buffers.sums, kPaired);
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const float sum = states[i].sum;
      T* to = out_ + ((batch * tokens_ + row + i) * heads_ + head) * dim_;
      write_row(buffers.sums + i * dim_, sum == 0 ? 0 : 1 / sum, to);
    }
  }

  // The weights of f32 are written over the scores.
  static Bf16* as_bits(at::BFloat16* p) { return reinterpret_cast<Bf16*>(p); }
  static Bf16* as_bits(float*) { return nullptr; }
  void write_row(const float* row, float factor, float* to) const { scale_row(row, dim_, factor, to); }
  void write_row(const float* row, float factor, at::BFloat16* to) const {
    scale_row(row, dim_, factor, as_bits(to));
  }

  const float* bias_row(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key,
                        std::int64_t columns, const Buffers& buffers) const {
    if (!bias_.defined()) return nullptr;
    const T* from = bias_.const_data_ptr<T>() + batch * bias_.stride(0) + head * bias_.stride(1) +
                    row * bias_.stride(2) + key * bias_.stride(3);
    for (std::int64_t i = 0; i < columns; ++i)
      buffers.bias[i] = static_cast<float>(from[i * bias_.stride(3)]);
    return buffers.bias;
  }

  Rows<T> q_, k_, v_;
  at::Tensor bias_;  // expanded to [batch, heads, tokens, keys]
  T* out_;
  std::int64_t batch_, heads_, tokens_, keys_, dim_;
  float scale_;
};

bool has_small_products(at::ScalarType dtype, std::int64_t dim) {
#if defined(__x86_64__)
  if (dtype == at::kFloat) return __builtin_cpu_supports("avx512f");
  if (dtype == at::kBFloat16) return __builtin_cpu_supports("avx512bf16") && dim % 2 == 0;
#endif
  return false;
}

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  if (!has_small_products(q.scalar_type(), q.size(3)) || q.numel() == 0 || k.size(2) == 0)
    return reference::attention(q, k, v, bias);
  at::Tensor expanded;
  if (bias.defined())
    expanded = bias.to(q.scalar_type()).expand({q.size(0), q.size(1), q.size(2), k.size(2)});
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

namespace reference {

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  std::optional<at::Tensor> mask;
  if (bias.defined()) mask = bias.to(q.scalar_type());
  return at::scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2);
}

}  // namespace reference
}  // namespace sluice::kernels
