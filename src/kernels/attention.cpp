#include "kernels/attention.h"

#include "kernels/attention_pass.h"
#include "kernels/micro_product.h"
#include "kernels/tasks.h"
#include "kernels/work_timer.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kRowsAtOnce = 16;  // the least a thread takes where it does little to each

template <typename T>
HeadRows<T> head_rows(const at::Tensor& x) {  // [batch, heads, rows, …]
  return {static_cast<T*>(x.mutable_data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

template <typename T>
HeadRows<const T> read_rows(const at::Tensor& x) {
  return {static_cast<const T*>(x.const_data_ptr()), x.stride(0), x.stride(1), x.stride(2)};
}

at::Tensor with_contiguous_rows(const at::Tensor& x) {
  return x.stride(3) == 1 || x.size(3) == 1 ? x : x.contiguous();
}

at::Tensor split_heads(const at::Tensor& x, std::int64_t heads) {  // -> [batch, heads, tokens, dim]
  return x.unflatten(2, {heads, -1}).transpose(1, 2);
}

template <typename T>
class Entry {  // queries or keys, and the tensors that their operand points into
 public:
  Entry(const at::Tensor& x, const AttentionEntry& entry)
      : x_(x), eps_(static_cast<float>(entry.eps)), batches_(x.size(0)), heads_(x.size(1)) {
    operand_ = {.x = read_rows<T>(x), .rows = x.size(2), .dim = x.size(3)};
    if (entry.norm.defined()) {
      weight_ = entry.norm.to(at::kFloat).contiguous();
      operand_.weight = weight_.const_data_ptr<float>();
    }
    if (entry.cos.defined()) {
      cos_ = angles(entry.cos), sin_ = angles(entry.sin);
      operand_.cos = read_rows<float>(cos_), operand_.sin = read_rows<float>(sin_);
    }
  }

  const EntryOperand<T>& operand() const { return operand_; }
  bool changes() const { return weight_.defined() || cos_.defined(); }

  // 1 / rms of every row, once for all heads.
  void find_factors(Workspace& workspace) {
    if (!weight_.defined()) return;
    factors_ = workspace.take({batches_ * operand_.rows}, at::kFloat);
    auto* factors = factors_.data_ptr<float>();
    at::parallel_for(0, batches_ * operand_.rows, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) factors[row] = factor(row);
    });
    operand_.factors = factors;
  }

  // In place: from then on they are plain rows.
  void apply() {
    const HeadRows<T> to = head_rows<T>(x_);
    at::parallel_for(0, batches_ * operand_.rows, kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t batch = row / operand_.rows, token = row % operand_.rows;
        const float one = weight_.defined() ? factor(row) : 1;
        for (std::int64_t head = 0; head < heads_; ++head) {
          EntryRows<T> rows = operand_.at(batch, head, token, 1);
          if (weight_.defined()) rows.factors = &one;
          enter_rows(rows, to.row(batch, head, token), to.row_stride, operand_.dim);
        }
      }
    });
    operand_ = {.x = operand_.x, .rows = operand_.rows, .dim = operand_.dim};
  }

 private:
  float factor(std::int64_t row) const {
    return inverse_rms(EntryRow<T>{.from = operand_.x.row(row / operand_.rows, 0, row % operand_.rows),
                                   .heads = heads_,
                                   .head_stride = operand_.x.head_stride,
                                   .dim = operand_.dim},
                       eps_);
  }

  at::Tensor angles(const at::Tensor& table) const {
    return with_contiguous_rows(table.expand({batches_, heads_, operand_.rows, operand_.dim / 2}));
  }

  at::Tensor x_, weight_, cos_, sin_, factors_;
  float eps_;
  std::int64_t batches_, heads_;
  EntryOperand<T> operand_;
};

// With the keys' entry applied on the way in, each pass applies it anew; from this many passes on it is
// cheaper to write them back once.
constexpr std::int64_t kPassesThatWriteBack = 3;

template <typename T>
void attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionOptions& options,
            Workspace& workspace, at::Tensor& out) {
  const Workspace::Scope scope(workspace);
  const std::int64_t heads = q.size(1), tokens = q.size(2), dim = q.size(3), tasks = q.size(0) * heads;
  const AttentionPlan plan = plan_attention(
      {.heads = tasks, .tokens = tokens, .keys = k.size(2), .dim = dim, .dtype = q.scalar_type()},
      at::get_num_threads(), attention_limits());

  Entry<T> queries(q, options.queries), keys(k, options.keys);
  AttentionOperands<T> operands{.v = read_rows<T>(v), .heads_a_key = heads / k.size(1)};
  queries.find_factors(workspace);
  if (keys.changes() && plan.passes * operands.heads_a_key >= kPassesThatWriteBack) keys.apply();
  if (keys.operand().cos.data || keys.operand().weight) keys.find_factors(workspace);
  operands.q = queries.operand(), operands.k = keys.operand();
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(dim)));
  operands.scale = static_cast<float>(scale);
  operands.mask = {options.visible == Visible::up_to_own, options.window};
  operands.out = head_rows<T>(split_heads(out, heads));

  at::Tensor bias, gate;
  if (options.bias.defined()) {
    bias = options.bias.scalar_type() == q.scalar_type() ? options.bias : options.bias.to(at::kFloat);
    bias = bias.expand({q.size(0), heads, tokens, k.size(2)});
    if (bias.scalar_type() == q.scalar_type()) {
      operands.bias = {read_rows<T>(bias), bias.stride(3)};
    } else {
      operands.wide_bias = {read_rows<float>(bias), bias.stride(3)};
    }
  }
  if (options.gate.defined()) {
    gate = options.gate.to(q.scalar_type()).unsqueeze(3).transpose(1, 2);
    operands.gate = read_rows<T>(gate);
  }

  const at::Tensor scratch = workspace.take({plan.workers, plan.scratch.bytes}, at::kByte);
  auto* bytes = reinterpret_cast<std::byte*>(scratch.data_ptr<std::uint8_t>());
  each_task(plan.workers, tasks * plan.passes, [&](std::int64_t worker, std::int64_t task) {
    const std::int64_t head = task / plan.passes;
    attention_pass(operands, plan, head / heads, head % heads, task % plan.passes * plan.pass_rows,
                   bytes + worker * plan.scratch.bytes);
    end_products();
  });
}

// What the options say of a shape that has it.
void require_fitting(const at::Tensor& q, const at::Tensor& k, const AttentionOptions& options) {
  const bool heads_fit = k.size(1) > 0 && q.size(1) % k.size(1) == 0;
  const bool rotates = options.queries.cos.defined() || options.keys.cos.defined();
  if (heads_fit && (options.visible == Visible::every_key || q.size(2) == k.size(2)) &&
      (!rotates || q.size(3) % 2 == 0))
    return;
  throw Error(ErrorKind::internal,
              fmt::format("an attention of {} rows, {} heads over {} keys, {} heads of {}", q.size(2),
                          q.size(1), k.size(2), k.size(1), q.size(3)));
}

std::atomic<Bytes> budget = AttentionLimits{}.scratch;

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& bias) {
  return attention(q, k, v, AttentionOptions{.bias = bias});
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     const AttentionOptions& options) {
  const WorkTimer timer(Work::attention);
  require_fitting(q, k, options);
  at::Tensor out = options.out;
  if (!out.defined()) out = at::empty({q.size(0), q.size(2), q.size(1) * q.size(3)}, q.options());
  if (k.size(2) == 0) out.zero_();
  if (q.numel() == 0 || k.size(2) == 0) return out;
  Workspace own;
  Workspace& workspace = options.workspace ? *options.workspace : own;
  const at::Tensor queries = with_contiguous_rows(q), keys = with_contiguous_rows(k),
                   values = with_contiguous_rows(v);
  if (q.scalar_type() == at::kFloat) {
    attend<float>(queries, keys, values, options, workspace, out);
  } else {
    attend<Bf16>(queries, keys, values, options, workspace, out);
  }
  return out;
}

void set_attention_budget(Bytes scratch) {
  budget = scratch;
}

AttentionLimits attention_limits() {
  return {.scratch = budget};
}

}  // namespace sluice::kernels
