#include "kernels/packed_product.h"

#include "kernels/rows.h"
#include "kernels/tasks.h"
#include "kernels/weight_panels.h"
#include "kernels/widen.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

namespace sluice::kernels {
namespace {

// A tile is 64 rows of the weight and 4 KiB of each in the dtype that is computed with: 256 KiB, packed once
// for up to 1024 tokens, whose sums are as large (bench/kernels: other sizes measured 2 to 10 % slower).
constexpr std::int64_t kTileRows = 64;
constexpr std::int64_t kTileRowBytes = 4096;
constexpr std::int64_t kPassTokens = 1024;
constexpr std::int64_t kBlockTokens = 48;  // that go through a tile together, in a second-level cache

constexpr std::int64_t divide_up(std::int64_t n, std::int64_t by) {
  return (n + by - 1) / by;
}

// A tile's outputs for some tokens.
struct Task {
  std::int64_t row = 0, rows = 0;  // of the weight
  std::int64_t token = 0, end = 0;
};

// How a product is cut.  Tiles inside of passes: the tokens of a pass stay in a third-level cache.
struct Cut {
  std::int64_t out = 0, tokens = 0;
  std::int64_t tiles = 0, pass_tokens = 0, tasks = 0, workers = 0;

  Cut(std::int64_t out, std::int64_t tokens, std::int64_t threads) : out(out), tokens(tokens) {
    tiles = divide_up(out, kTileRows);
    const std::int64_t blocks = divide_up(tokens, kBlockTokens);
    // Two tasks a thread if tiles alone do not give them; each task packs its tile anew.
    const std::int64_t splits = std::clamp<std::int64_t>(divide_up(2 * threads, tiles), 1, blocks);
    const std::int64_t passes = std::max(divide_up(tokens, kPassTokens), splits);
    pass_tokens = divide_up(tokens, passes);
    tasks = tiles * divide_up(tokens, pass_tokens);
    workers = std::min(threads, tasks);
  }

  Task task(std::int64_t index) const {
    const std::int64_t row = index % tiles * kTileRows, token = index / tiles * pass_tokens;
    return {row, std::min(kTileRows, out - row), token, std::min(token + pass_tokens, tokens)};
  }
};

constexpr std::int64_t kTileBytes = kTileRows * kTileRowBytes;

constexpr std::int64_t sums_bytes(std::int64_t tokens) {
  return tokens * kTileRows * static_cast<std::int64_t>(sizeof(float));
}

template <typename T>
class PackedProduct {
 public:
  PackedProduct(std::span<const Factors> factors, const at::Tensor& bias, const Epilogue& epilogue,
                at::Tensor& y)
      : cut_(y.size(-1), y.numel() / y.size(-1), at::get_num_threads()) {
    for (const Factors& of : factors) add_operand(of);
    if (bias.defined()) bias_ = stored_values(Matrix(bias, {}, 1, cut_.out));
    finished_.sums_stride = kTileRows;
    finished_.factor = epilogue.factor;
    finished_.activation = epilogue.activation;
    const std::int64_t tokens = y.dim() < 2 ? 1 : y.size(-2);
    finished_.gate = rows_of<T>(epilogue.gate, y.scalar_type(), tokens, cut_.out);
    if (epilogue.residual.defined()) {
      finished_.residual = static_cast<const T*>(epilogue.residual.const_data_ptr());
      finished_.residual_stride = row_stride(epilogue.residual);
    }
    finished_.to = static_cast<T*>(y.mutable_data_ptr());
    finished_.stride = row_stride(y);
  }

  void run(Workspace& workspace) {
    const Workspace::Scope scope(workspace);
    const at::Tensor scratch = workspace.take({cut_.workers, bytes_a_worker()}, at::kByte);
    auto* base = static_cast<std::byte*>(scratch.mutable_data_ptr());
    each_task(cut_.workers, cut_.tasks, [&](std::int64_t worker, std::int64_t task) {
      multiply(cut_.task(task), Buffers(base + worker * bytes_a_worker()));
      end_products();
    });
  }

 private:
  static constexpr std::int64_t kDepth = kTileRowBytes / static_cast<std::int64_t>(sizeof(T));
  static constexpr std::int64_t kFixedBytes = WeightPanels<T>::kSideBytes + kTileBytes;

  std::int64_t bytes_a_worker() const { return kFixedBytes + sums_bytes(cut_.pass_tokens); }

  struct Buffers {
    std::byte* side;
    T* tile;
    float* sums;  // [token of the pass][kTileRows]

    explicit Buffers(std::byte* base)
        : side(base),
          tile(reinterpret_cast<T*>(base + WeightPanels<T>::kSideBytes)),
          sums(reinterpret_cast<float*>(base + kFixedBytes)) {}
  };

  struct Operand {
    WeightPanels<T> weight;
    const T* x;
    std::int64_t x_stride;
  };

  // What goes through a tile at a time of what is added up for every output.
  struct Part {
    std::size_t operand = 0;
    std::int64_t from = 0, depth = 0;
  };

  void add_operand(const Factors& of) {
    const std::int64_t in = of.weight.columns;
    for (std::int64_t k = 0; k < in; k += kDepth)
      parts_.push_back({.operand = operands_.size(), .from = k, .depth = std::min(kDepth, in - k)});
    operands_.push_back({.weight = WeightPanels<T>(of.weight),
                         .x = static_cast<const T*>(of.x.const_data_ptr()),
                         .x_stride = row_stride(of.x)});
  }

  void multiply(const Task& task, const Buffers& buffers) const {
    for (const Part& part : parts_) {
      operands_[part.operand].weight.pack(
          {.row = task.row, .rows = task.rows, .from = part.from, .depth = part.depth}, buffers.side,
          buffers.tile);
      for (std::int64_t begin = task.token; begin < task.end; begin += kBlockTokens) {
        const std::int64_t end = std::min(begin + kBlockTokens, task.end);
        for (std::int64_t panel = 0; panel * kPanelColumns < task.rows; ++panel)
          multiply_panel(task, part, panel, begin, end, buffers);
        if (&part == &parts_.back()) finish(task, begin, end, buffers);
      }
    }
  }

  void multiply_panel(const Task& task, const Part& part, std::int64_t panel, std::int64_t begin,
                      std::int64_t end, const Buffers& buffers) const {
    constexpr std::int64_t kWord = kWordValues<T>;
    const std::int64_t column = panel * kPanelColumns;
    const Operand& of = operands_[part.operand];
    kernels::multiply(MicroProduct<T>{.a = of.x + begin * of.x_stride + part.from,
                                      .a_stride = of.x_stride,
                                      .depth = divide_up(part.depth, kWord) * kWord,
                                      .b = buffers.tile + panel * WeightPanels<T>::panel_values(part.depth),
                                      .columns = panel_columns(column, task.rows),
                                      .c = buffers.sums + (begin - task.token) * kTileRows + column,
                                      .c_stride = kTileRows,
                                      .add = &part != &parts_.front()},
                      end - begin);
  }

  void finish(const Task& task, std::int64_t begin, std::int64_t end, const Buffers& buffers) const {
    FinishedRows<T> rows = finished_;
    rows.sums = buffers.sums + (begin - task.token) * kTileRows;
    rows.to += task.row;
    if (rows.residual) rows.residual += task.row;
    if (rows.gate.data) rows.gate.data += task.row;
    std::array<float, kTileRows> bias;
    if (bias_.values) {
      round_bias(task, bias.data());
      rows.bias = bias.data();
    }
    finish_rows(rows, begin, end, task.rows);
  }

  // As it is added: rounded to the dtype that is computed with.
  void round_bias(const Task& task, float* to) const {
    std::array<T, kTileRows> rounded;
    widen_values(bias_, task.row, task.rows, rounded.data());
    const StoredValues values{.format = kStored,
                              .values = reinterpret_cast<const std::byte*>(rounded.data())};
    widen_values(values, 0, task.rows, to);
  }
  static constexpr Stored kStored = std::is_same_v<T, float> ? Stored::f32 : Stored::bf16;

  std::vector<Operand> operands_;
  std::vector<Part> parts_;  // in the order in which they are added up
  StoredValues bias_;        // values: nullptr without
  Cut cut_;
  FinishedRows<T> finished_;
};

}  // namespace

Bytes product_scratch(std::int64_t threads) {
  return static_cast<Bytes>(threads *
                            (WeightPanels<float>::kSideBytes + kTileBytes + sums_bytes(kPassTokens)));
}

void packed_product(std::span<const Factors> factors, const at::Tensor& bias, const Epilogue& epilogue,
                    Workspace& workspace, at::Tensor& y) {
  if (y.scalar_type() == at::kFloat) {
    PackedProduct<float>(factors, bias, epilogue, y).run(workspace);
  } else {
    PackedProduct<Bf16>(factors, bias, epilogue, y).run(workspace);
  }
}

}  // namespace sluice::kernels
