#include "kernels/attention_plan.h"

#include "kernels/micro_product.h"
#include "kernels/softmax_rows.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::kernels {
namespace {

// Packing a block of keys takes a fiftieth of what this many rows of a pass take with it; their sums just
// leave room for the packed keys in a second-level cache of 1 MiB.  768 measured 4 % slower at 1024 tokens,
// 1536 no faster at 14000.
constexpr std::int64_t kMostPassRows = 1032;
constexpr std::int64_t kFewRows = 96;  // below, packing the keys shows

std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

AttentionScratch layout(const AttentionShape& shape, std::int64_t pass_rows) {
  const auto size = static_cast<std::int64_t>(c10::elementSize(shape.dtype));
  const std::int64_t block_rows = std::min(pass_rows, kAttentionRows);
  const std::int64_t columns = round_up(std::min(shape.keys, kAttentionKeys), kPanelColumns);
  AttentionScratch at;
  at.depth = round_up(shape.dim, 4 / size);
  at.width = round_up(shape.dim, kPanelColumns / 2);
  // Rows at a distance that is no multiple of 4 KiB do not drive each other out of a first-level cache.
  at.stride = columns + kLanes;
  auto take = [&](std::int64_t bytes) { return std::exchange(at.bytes, at.bytes + round_up(bytes, 64)); };
  at.keys = take(columns * at.depth * size);
  at.values = take(columns * at.width * size);
  at.entry = take(kPanelColumns * at.depth * size);
  at.queries = take(pass_rows * at.depth * size);
  at.scores = take(block_rows * at.stride * 4);
  at.bias = take(block_rows * at.stride * 4);
  if (shape.dtype == at::kFloat) at.parts = take(2 * block_rows * at.width * 4);
  at.sums = take(pass_rows * at.width * 4);
  at.states = take(pass_rows * static_cast<std::int64_t>(sizeof(SoftmaxState)));
  return at;
}

std::int64_t bytes_with(const AttentionShape& shape, std::int64_t pass_rows) {
  return layout(shape, pass_rows).bytes;
}

// The most rows, in whole blocks, whose scratch is at most `bytes`; 0: none.
std::int64_t most_rows(const AttentionShape& shape, std::int64_t wanted, std::int64_t bytes) {
  std::int64_t rows = wanted;
  while (rows > 0 && bytes_with(shape, rows) > bytes) rows = (rows - 1) / kAttentionRows * kAttentionRows;
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
  // One worker with several blocks of rows is faster than two that pack all keys for fewer.
  plan.workers = std::clamp<std::int64_t>(budget / bytes_with(shape, std::min(wanted, kFewRows)), 1,
                                          std::min(threads, tasks));
  plan.pass_rows = most_rows(shape, wanted, budget / plan.workers);
  if (plan.pass_rows == 0) refuse(bytes_with(shape, std::min(wanted, kAttentionRows)), limits);
  plan.passes = (shape.tokens + plan.pass_rows - 1) / plan.pass_rows;
  plan.scratch = layout(shape, plan.pass_rows);
  return plan;
}

Bytes attention_scratch(const AttentionShape& shape, std::int64_t threads, AttentionLimits limits) {
  const AttentionPlan plan = plan_attention(shape, threads, limits);
  return static_cast<Bytes>(plan.workers * plan.scratch.bytes);
}

}  // namespace sluice::kernels
