#include "kernels/packed_product.h"

#include "kernels/pack.h"
#include "kernels/tasks.h"
#include "kernels/widen.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/native/CPUBlas.h>

#include <algorithm>
#include <type_traits>

namespace sluice::kernels {
namespace {

// A tile is 64 rows of the weight, 2048 values of each in bf16 and 512 in f32: at most 256 KiB, packed once
// for up to 2048 tokens, in blocks of 64 (bench/kernels: other sizes measured 2 to 25 % slower).
constexpr std::int64_t kTileRows = 64;
constexpr std::int64_t kBlockTokens = 64;
constexpr std::int64_t kPassTokens = 2048;
// Rows that are widened side by side before they are packed, and bytes of each: 16 KiB, in a first-level
// cache.
constexpr std::int64_t kSideRows = kLanes;
constexpr std::int64_t kSideBytes = 1024;

std::int64_t divide_up(std::int64_t n, std::int64_t by) {
  return (n + by - 1) / by;
}

template <typename T>
class PackedProduct {
 public:
  PackedProduct(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue,
                at::Tensor& y)
      : weight_(stored_values(weight)),
        in_place_(weight_.format == (kPaired ? Stored::bf16 : Stored::f32)),
        x_(x.const_data_ptr<T>()),
        bias_(bias.defined() ? bias.const_data_ptr<float>() : nullptr),
        y_(y.mutable_data_ptr<T>()),
        epilogue_(epilogue),
        tokens_(x.size(0)),
        in_(weight.columns),
        out_(weight.rows) {
    const std::int64_t threads = at::get_num_threads(), tiles = divide_up(out_, kTileRows);
    const std::int64_t blocks = divide_up(tokens_, kBlockTokens);
    // Two tasks a thread if tiles alone do not give them; each task packs its tile anew.
    const std::int64_t splits = std::clamp<std::int64_t>(divide_up(2 * threads, tiles), 1, blocks);
    pass_tokens_ = std::min(divide_up(blocks, splits) * kBlockTokens, kPassTokens);
    passes_ = divide_up(tokens_, pass_tokens_);
    tasks_ = tiles * passes_;
    workers_ = std::min(threads, tasks_);
  }

  void run() {
    const at::Tensor scratch = at::empty({workers_, bytes_a_worker()}, at::TensorOptions().dtype(at::kByte));
    each_task(workers_, tasks_, [&](std::int64_t worker, std::int64_t task) {
      const Buffers buffers(reinterpret_cast<std::byte*>(scratch.data_ptr<std::uint8_t>()) +
                            worker * bytes_a_worker());
      multiply(task / passes_ * kTileRows, task % passes_ * pass_tokens_, buffers);
      at::native::cpublas::brgemm_release(kPaired);
    });
  }

 private:
  static constexpr bool kPaired = !std::is_same_v<T, float>;
  static constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kDepth = kPaired ? 2048 : 512;  // values of a row in a tile
  static constexpr std::int64_t kTileBytes = kTileRows * kDepth * kSize;
  using Value = std::conditional_t<kPaired, Bf16, float>;

  std::int64_t bytes_a_worker() const {
    return kTileBytes + kSideRows * kSideBytes + pass_tokens_ * kTileRows * 4;
  }

  struct Buffers {
    std::byte *tile, *side;
    float* sums;

    explicit Buffers(std::byte* base)
        : tile(base),
          side(base + kTileBytes),
          sums(reinterpret_cast<float*>(side + kSideRows * kSideBytes)) {}
  };

  // Rows [row, row + 64) of the weight with the tokens of one pass.
  void multiply(std::int64_t row, std::int64_t token, const Buffers& buffers) const {
    const std::int64_t rows = std::min(kTileRows, out_ - row), end = std::min(token + pass_tokens_, tokens_);
    for (std::int64_t k = 0; k < in_; k += kDepth) {
      const std::int64_t depth = std::min(kDepth, in_ - k);
      pack_tile(row, rows, k, depth, buffers);
      for (std::int64_t t = token; t < end; t += kBlockTokens) {
        at::native::cpublas::brgemm(std::min(kBlockTokens, end - t), rows, depth, in_, rows, kTileRows,
                                    /*add_C=*/k > 0, x_ + t * in_ + k,
                                    reinterpret_cast<const T*>(buffers.tile),
                                    buffers.sums + (t - token) * kTileRows, kPaired);
      }
    }
    for (std::int64_t t = token; t < end; ++t) {
      finish_row(buffers.sums + (t - token) * kTileRows, rows, bias_ ? bias_ + row : nullptr, epilogue_,
                 reinterpret_cast<Value*>(y_ + t * out_ + row));
    }
  }

  void pack_tile(std::int64_t row, std::int64_t rows, std::int64_t k, std::int64_t depth,
                 const Buffers& buffers) const {
    if (in_place_) {
      transpose_words({.from = weight_.values + (row * in_ + k) * kSize,
                       .stride = in_ * kSize,
                       .rows = rows,
                       .words = depth * kSize / 4},
                      buffers.tile, rows);
      return;
    }
    constexpr std::int64_t kSideDepth = kSideBytes / kSize;
    for (std::int64_t r = 0; r < rows; r += kSideRows) {
      const std::int64_t side = std::min(kSideRows, rows - r);
      for (std::int64_t d = 0; d < depth; d += kSideDepth) {
        const std::int64_t count = std::min(kSideDepth, depth - d);
        for (std::int64_t i = 0; i < side; ++i) {
          widen_values(weight_, (row + r + i) * in_ + k + d, count,
                       reinterpret_cast<Value*>(buffers.side + i * kSideBytes));
        }
        transpose_words(
            {.from = buffers.side, .stride = kSideBytes, .rows = side, .words = count * kSize / 4},
            buffers.tile + 4 * (d * kSize / 4 * rows + r), rows);
      }
    }
  }

  StoredValues weight_;
  bool in_place_;  // stored in the dtype that is computed with
  const T* x_;
  const float* bias_;
  T* y_;
  Epilogue epilogue_;
  std::int64_t tokens_, in_, out_;
  std::int64_t pass_tokens_ = 0, passes_ = 0, tasks_ = 0, workers_ = 0;
};

}  // namespace

void packed_product(const at::Tensor& x, const Matrix& weight, const at::Tensor& bias, Epilogue epilogue,
                    at::Tensor& y) {
  if (x.scalar_type() == at::kFloat) {
    PackedProduct<float>(x, weight, bias, epilogue, y).run();
  } else {
    PackedProduct<at::BFloat16>(x, weight, bias, epilogue, y).run();
  }
}

}  // namespace sluice::kernels
