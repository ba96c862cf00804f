#include "kernels/attention_plan.h"

#include "kernels/lanes.h"
#include "kernels/softmax_rows.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::kernels {
namespace {

// With 512 rows a pass the packing does not show any more, and the sums of these rows stay in a second-level
// cache; 2048 measured 4 % slower (6144 tokens, 2 cores).
constexpr std::int64_t kMostPassRows = 512;
constexpr std::int64_t kFewestPassRows = 16;

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

AttentionScratch layout(const AttentionShape& shape, std::int64_t pass_rows) {
  const std::int64_t block_rows = std::min(pass_rows, kAttentionRows);
  const std::int64_t columns = std::min(shape.keys, kAttentionKeys), padded = round_up(columns, kLanes);
  const auto size = static_cast<std::int64_t>(c10::elementSize(shape.dtype));
  AttentionScratch at;
  auto take = [&](std::int64_t bytes) { return std::exchange(at.bytes, at.bytes + round_up(bytes, 64)); };
  at.keys = take(columns * shape.dim * size);
  at.values = take(padded * shape.dim * size);
  at.queries = take(pass_rows * shape.dim * size);
  at.scores = take(block_rows * padded * 4);
  at.weights = size == 4 ? at.scores : take(block_rows * padded * size);
  at.sums = take(pass_rows * shape.dim * 4);
  at.states = take(pass_rows * static_cast<std::int64_t>(sizeof(SoftmaxState)));
  at.bias = take(padded * 4);
  return at;
}

std::int64_t bytes_with(const AttentionShape& shape, std::int64_t pass_rows) {
  return layout(shape, pass_rows).bytes;
}

// The most rows, in whole blocks or in sixteens below one block, whose scratch is at most `bytes`; 0: none.
std::int64_t most_rows(const AttentionShape& shape, std::int64_t wanted, std::int64_t bytes) {
  std::int64_t rows = wanted;
  while (rows > 0 && bytes_with(shape, rows) > bytes) {
    const std::int64_t step = rows > kAttentionRows ? kAttentionRows : kFewestPassRows;
    rows = (rows - 1) / step * step;
  }
  return rows;
}

// Two tasks a thread if heads alone do not give them.
std::int64_t wanted_rows(const AttentionShape& shape, std::int64_t threads) {
  const std::int64_t blocks = (shape.tokens + kAttentionRows - 1) / kAttentionRows;
  const std::int64_t splits =
      std::clamp<std::int64_t>((2 * threads + shape.heads - 1) / shape.heads, 1, blocks);
  const std::int64_t rows = (blocks + splits - 1) / splits * kAttentionRows;
  return std::min({rows, shape.tokens, kMostPassRows});
}

[[noreturn]] void refuse(std::int64_t least, AttentionLimits limits) {
  throw Error(ErrorKind::does_not_fit,
              fmt::format("an attention needs {} of scratch at least, its budget is {}",
                          format_bytes(static_cast<Bytes>(least)), format_bytes(limits.scratch)),
              fmt::format("pass --attention-budget {}KiB or more", round_up(least, 1024) / 1024));
}

}  // namespace

AttentionPlan plan_attention(const AttentionShape& shape, std::int64_t threads, AttentionLimits limits) {
  const std::int64_t wanted = wanted_rows(shape, threads);
  const std::int64_t tasks = shape.heads * ((shape.tokens + wanted - 1) / wanted);
  const auto budget = static_cast<std::int64_t>(std::min(limits.scratch, Bytes{1} << 62));
  AttentionPlan plan;
  // One worker with a whole block of rows is faster than two that pack all keys for a part of one.
  plan.workers = std::clamp<std::int64_t>(budget / bytes_with(shape, std::min(wanted, kAttentionRows)), 1,
                                          std::min(threads, tasks));
  plan.pass_rows = most_rows(shape, wanted, budget / plan.workers);
  if (plan.pass_rows == 0) refuse(bytes_with(shape, std::min(wanted, kFewestPassRows)), limits);
  plan.block_rows = std::min(plan.pass_rows, kAttentionRows);
  plan.passes = (shape.tokens + plan.pass_rows - 1) / plan.pass_rows;
  plan.scratch = layout(shape, plan.pass_rows);
  return plan;
}

Bytes attention_scratch(const AttentionShape& shape, std::int64_t threads, AttentionLimits limits) {
  const AttentionPlan plan = plan_attention(shape, threads, limits);
  return static_cast<Bytes>(plan.workers * plan.scratch.bytes);
}

}  // namespace sluice::kernels
