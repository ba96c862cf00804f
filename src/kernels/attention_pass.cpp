#include "kernels/attention_pass.h"

#include "kernels/micro_product.h"
#include "kernels/pack.h"
#include "kernels/plain_value.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace sluice::kernels {
namespace {

// Sums of f32 run over so many keys by themselves, then over the parts of a block, then over blocks: one sum
// over thousands of keys would be rounded at each.
constexpr std::int64_t kPartKeys = 128;

void softmax(const SoftmaxBlock& block, float*) {
  softmax_to_f32(block);
}
void softmax(const SoftmaxBlock& block, Bf16*) {
  softmax_to_bf16(block);
}

template <typename T>
class Pass {
 public:
  Pass(const AttentionOperands<T>& x, const AttentionPlan& plan, std::int64_t batch, std::int64_t head,
       std::int64_t row, std::byte* scratch)
      : x_(x),
        at_(plan.scratch),
        batch_(batch),
        head_(head),
        row_(row),
        rows_(std::min(plan.pass_rows, x.q.rows - row)),
        keys_(reinterpret_cast<T*>(scratch + at_.keys)),
        values_(reinterpret_cast<T*>(scratch + at_.values)),
        entry_(reinterpret_cast<T*>(scratch + at_.entry)),
        queries_(reinterpret_cast<T*>(scratch + at_.queries)),
        scores_(reinterpret_cast<float*>(scratch + at_.scores)),
        bias_(reinterpret_cast<float*>(scratch + at_.bias)),
        parts_(reinterpret_cast<float*>(scratch + at_.parts)),
        sums_(reinterpret_cast<float*>(scratch + at_.sums)),
        states_(reinterpret_cast<SoftmaxState*>(scratch + at_.states)) {}

  void run() {
    enter_rows(x_.q.at(batch_, head_, row_, rows_), queries_, at_.depth, at_.depth);
    std::fill_n(states_, rows_, SoftmaxState{});
    std::fill_n(sums_, rows_ * at_.width, 0.0F);
    const SoftmaxSpan seen = x_.mask.of_rows(row_, rows_, x_.k.rows);
    for (std::int64_t key = seen.begin / kAttentionKeys * kAttentionKeys; key < seen.end;
         key += kAttentionKeys) {
      const std::int64_t columns = std::min(kAttentionKeys, x_.k.rows - key);
      pack(key, columns);
      for (std::int64_t i = 0; i < rows_; i += kAttentionRows)
        attend(i, std::min(kAttentionRows, rows_ - i), key, columns);
    }
    for (std::int64_t i = 0; i < rows_; ++i) write(i);
  }

 private:
  static constexpr std::int64_t kWord = kWordValues<T>;

  void pack(std::int64_t key, std::int64_t columns) {
    const std::int64_t head = head_ / x_.heads_a_key;
    for (std::int64_t column = 0; column < columns; column += kPanelColumns) {
      const std::int64_t panel = panel_columns(column, columns), count = std::min(panel, columns - column);
      const EntryRows<T> rows = x_.k.at(batch_, head, key + column, count);
      T* to = keys_ + column * at_.depth;
      if (count == panel && !rows.factors && !rows.cos && rows.dim == at_.depth) {
        pack_keys(rows.from, rows.stride, panel, at_.depth, to);
        continue;
      }
      enter_rows(rows, entry_, at_.depth, at_.depth);
      std::fill(entry_ + count * at_.depth, entry_ + panel * at_.depth, T{});
      pack_keys(entry_, at_.depth, panel, at_.depth, to);
    }
    pack_values(x_.v.row(batch_, head, key), x_.v.row_stride, columns, x_.k.dim, values_);
    if (bias_is_one_row()) fill_bias(row_, 1, key, columns);
  }

  // Rows [first, first + rows) of the pass and the packed keys [key, key + columns).
  void attend(std::int64_t first, std::int64_t rows, std::int64_t key, std::int64_t columns) {
    const SoftmaxSpan seen = x_.mask.of_rows(row_ + first, rows, x_.k.rows);
    const SoftmaxSpan inside{std::max(seen.begin - key, std::int64_t{0}), std::min(seen.end - key, columns)};
    if (inside.begin >= inside.end) return;
    // Whole panels, of which `begin` is the first.
    const std::int64_t begin = inside.begin / kPanelColumns * kPanelColumns, count = inside.end - begin;
    for (std::int64_t column = 0; column < count; column += kPanelColumns) {
      multiply(MicroProduct<T>{.a = queries_ + first * at_.depth,
                               .a_stride = at_.depth,
                               .depth = at_.depth,
                               .b = keys_ + (begin + column) * at_.depth,
                               .columns = panel_columns(begin + column, columns),
                               .c = scores_ + column,
                               .c_stride = at_.stride},
               rows);
    }
    weigh(first, rows, key, begin, count);
    add_values(first, rows, begin, count, columns);
  }

  void weigh(std::int64_t first, std::int64_t rows, std::int64_t key, std::int64_t begin,
             std::int64_t count) {
    SoftmaxSpan spans[kAttentionRows];
    const bool masked = x_.mask.up_to_own;
    for (std::int64_t i = 0; masked && i < rows; ++i) {
      const SoftmaxSpan seen = x_.mask.of_row(row_ + first + i, x_.k.rows);
      spans[i].begin = std::clamp<std::int64_t>(seen.begin - key - begin, 0, count);
      spans[i].end = std::clamp<std::int64_t>(seen.end - key - begin, spans[i].begin, count);
    }
    const bool one_row = bias_is_one_row();
    if (has_bias() && !one_row) fill_bias(row_ + first, rows, key + begin, count);
    const float* bias = has_bias() ? bias_ + (one_row ? begin : 0) : nullptr;
    softmax({.scores = scores_,
             .stride = at_.stride,
             .rows = rows,
             .columns = count,
             .spans = masked ? spans : nullptr,
             .scale = x_.scale,
             .bias = bias,
             .bias_stride = one_row ? 0 : at_.stride,
             .states = states_ + first,
             .sums = sums_ + first * at_.width,
             .sums_stride = at_.width,
             .width = at_.width},
            queries_);
  }

  void add_values(std::int64_t first, std::int64_t rows, std::int64_t begin, std::int64_t count,
                  std::int64_t columns) {
    float* sums = sums_ + first * at_.width;
    if constexpr (std::is_same_v<T, Bf16>) {  // the sums' rounding does not show
      multiply_values(rows, {begin, begin + count}, begin, columns, Add::yes, sums);
      return;
    }
    float *block = parts_, *part = parts_ + rows * at_.width;
    for (std::int64_t key = 0; key < count; key += kPartKeys) {
      const SoftmaxSpan keys{begin + key, begin + std::min(key + kPartKeys, count)};
      multiply_values(rows, keys, begin, columns, Add::no, key == 0 ? block : part);
      if (key > 0) add_row(part, rows * at_.width, block);
    }
    add_row(block, rows * at_.width, sums);
  }

  enum class Add { no, yes };

  // The weights of some keys, of scores that begin with key `begin`, with their values.
  void multiply_values(std::int64_t rows, SoftmaxSpan keys, std::int64_t begin, std::int64_t columns, Add add,
                       float* to) {
    const std::int64_t packed_rows = (columns + kWord - 1) / kWord * kWord;
    for (std::int64_t column = 0; column < x_.k.dim; column += kPanelColumns) {
      const std::int64_t panel = panel_columns(column, x_.k.dim);
      multiply(MicroProduct<T>{.a = reinterpret_cast<const T*>(scores_) + (keys.begin - begin),
                               .a_stride = at_.stride * kWord,
                               .depth = (keys.end - keys.begin + kWord - 1) / kWord * kWord,
                               .b = values_ + column * packed_rows + keys.begin * panel,
                               .columns = panel,
                               .c = to + column,
                               .c_stride = at_.width,
                               .add = add == Add::yes},
               rows);
    }
  }

  bool has_bias() const { return x_.bias.rows.data || x_.wide_bias.rows.data; }
  bool bias_is_one_row() const {
    return has_bias() && x_.bias.rows.row_stride == 0 && x_.wide_bias.rows.row_stride == 0;
  }

  void fill_bias(std::int64_t row, std::int64_t rows, std::int64_t key, std::int64_t columns) {
    for (std::int64_t i = 0; i < rows; ++i) {
      if (x_.bias.rows.data) fill_bias_row(x_.bias, row + i, key, columns, bias_ + i * at_.stride);
      if (x_.wide_bias.rows.data) fill_bias_row(x_.wide_bias, row + i, key, columns, bias_ + i * at_.stride);
    }
  }

  template <typename B>
  void fill_bias_row(const ScoreBias<B>& bias, std::int64_t row, std::int64_t key, std::int64_t columns,
                     float* to) const {
    const B* from = bias.rows.row(batch_, head_, row) + key * bias.key_stride;
    for (std::int64_t i = 0; i < columns; ++i) to[i] = reference::plain_value(from[i * bias.key_stride]);
    std::fill(to + columns, to + (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns, 0.0F);
  }

  void write(std::int64_t row) const {
    const float sum = states_[row].sum;
    T* to = x_.out.row(batch_, head_, row_ + row);
    if (sum == 0) {  // saw nothing
      std::fill_n(to, x_.k.dim, T{});
      return;
    }
    float factor = 1 / sum;
    if (x_.gate.data)
      factor *= 2 / (1 + std::exp(-reference::plain_value(*x_.gate.row(batch_, head_, row_ + row))));
    scale_row(sums_ + row * at_.width, x_.k.dim, factor, to);
  }

  const AttentionOperands<T>& x_;
  const AttentionScratch& at_;
  std::int64_t batch_, head_, row_, rows_;
  T *keys_, *values_, *entry_, *queries_;
  float *scores_, *bias_, *parts_, *sums_;
  SoftmaxState* states_;
};

}  // namespace

template <typename T>
EntryRows<T> EntryOperand<T>::at(std::int64_t batch, std::int64_t head, std::int64_t row,
                                 std::int64_t count) const {
  return {.from = x.row(batch, head, row),
          .stride = x.row_stride,
          .rows = count,
          .dim = dim,
          .factors = factors ? factors + batch * rows + row : nullptr,
          .weight = weight ? weight + head * dim : nullptr,
          .cos = cos.row(batch, head, row),
          .sin = sin.row(batch, head, row),
          .angle_stride = cos.row_stride};
}

SoftmaxSpan KeyMask::of_row(std::int64_t row, std::int64_t keys) const {
  if (!up_to_own) return {0, keys};
  return {window > 0 ? std::max<std::int64_t>(0, row - window + 1) : 0, std::min(row + 1, keys)};
}

SoftmaxSpan KeyMask::of_rows(std::int64_t row, std::int64_t rows, std::int64_t keys) const {
  return {of_row(row, keys).begin, of_row(row + rows - 1, keys).end};
}

template <typename T>
void attention_pass(const AttentionOperands<T>& operands, const AttentionPlan& plan, std::int64_t batch,
                    std::int64_t head, std::int64_t row, std::byte* scratch) {
  Pass<T>(operands, plan, batch, head, row, scratch).run();
}

template struct EntryOperand<float>;
template struct EntryOperand<Bf16>;
template void attention_pass(const AttentionOperands<float>&, const AttentionPlan&, std::int64_t,
                             std::int64_t, std::int64_t, std::byte*);
template void attention_pass(const AttentionOperands<Bf16>&, const AttentionPlan&, std::int64_t, std::int64_t,
                             std::int64_t, std::byte*);

}  // namespace sluice::kernels
