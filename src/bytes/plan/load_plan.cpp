#include <sluice/load.h>

#include "base/text.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/dtype.h"
#include "bytes/load/delivery.h"
#include "bytes/plan/filters.h"
#include "bytes/plan/part_runs.h"
#include "bytes/plan/plan_box.h"
#include "bytes/plan/plan_pieces.h"
#include "bytes/plan/transform_rules.h"
#include "bytes/plan/virtual_tensor.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace sluice {
namespace bytes {
namespace {

// 56 bytes each.  A cut that leaves more pieces than this makes them too small to be read one by one.
constexpr std::int64_t kMostRanges = std::int64_t{1} << 23;

void check_rank(const Rank& rank, PlanProblems& problems) {
  if (rank.world == 0 || rank.index >= rank.world)
    problems.impossible(fmt::format("rank {} of {} does not exist", rank.index, rank.world));
}

void apply_slice(const Rank::Slice& cut, const Rank& rank, bool may_match_nothing,
                 std::vector<VirtualTensor>& tensors, PlanProblems& problems) {
  const std::string rule = "rank slice " + in_quotes(cut.glob);
  bool matched = false;
  for (VirtualTensor& tensor : tensors) {
    if (!glob_matches(cut.glob, tensor.name)) continue;
    matched = true;
    if (std::string reason = why_not_dimension(tensor, cut.dim); !reason.empty()) {
      problems.misfit(fmt::format("{}: {} {}", rule, describe(tensor), reason));
      continue;
    }
    const std::int64_t extent = tensor.shape[cut.dim], world = rank.world, index = rank.index;
    if (extent % world != 0) {
      problems.misfit(fmt::format("{}: {} does not divide among {} ranks along dimension {}", rule,
                                  describe(tensor), world, cut.dim));
      continue;
    }
    slice(tensor, cut.dim, extent / world * index, extent / world * (index + 1));
  }
  if (!matched && !may_match_nothing) problems.misfit(rule + ": matches no tensor");
}

void check_names(const std::vector<VirtualTensor>& tensors, PlanProblems& problems) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const VirtualTensor& tensor : tensors) {
    names.push_back(tensor.name);
    if (tensor.scale_name) names.push_back(*tensor.scale_name);
  }
  std::ranges::sort(names);
  for (auto at = names.begin(); at != names.end();) {
    auto end = std::upper_bound(at, names.end(), *at);
    if (at->empty()) problems.misfit("a tensor is left without a name");
    if (end - at > 1)
      problems.misfit(fmt::format("{} tensors are to be called {}", end - at, in_quotes(*at)));
    at = end;
  }
}

void check_bytes(const std::vector<VirtualTensor>& tensors, PlanProblems& problems) {
  std::int64_t ranges = 0;
  for (const VirtualTensor& tensor : tensors) {
    std::string reason = why_not_whole_bytes(tensor);
    if (reason.empty() && !checked_size(tensor.dtype, tensor.shape)) reason = "has no size";
    std::int64_t runs = 0;
    for (const Part& part : tensor.parts) runs += count_runs(part);
    ranges += runs;
    if (reason.empty() && ranges > kMostRanges) {
      reason = fmt::format("is cut into {} pieces, which makes {} of all: cut an outer dimension instead",
                           runs, ranges);
    }
    if (!reason.empty()) problems.misfit(fmt::format("{} {}", describe(tensor), reason));
    if (ranges > kMostRanges) return;
  }
}

std::vector<VirtualTensor> decide_tensors(const Checkpoint& checkpoint, const LoadRequest& request) {
  PlanProblems problems;
  check_rank(request.rank, problems);
  problems.throw_if_any(checkpoint.path());
  auto kept = filter_tensors(checkpoint.tensors(), request.filter, problems);
  bool may_match_nothing = !problems.empty();  // rules would only repeat that the filter is wrong
  if (request.rank.expert_parallel)
    may_match_nothing |= drop_foreign_experts(kept, checkpoint.tensors(), request.rank);
  std::vector<VirtualTensor> tensors;
  tensors.reserve(kept.size());
  for (const TensorInfo* tensor : kept) tensors.emplace_back(*tensor);
  for (const Rank::Slice& cut : request.rank.slices)
    apply_slice(cut, request.rank, may_match_nothing, tensors, problems);
  apply_rules(request.transforms, may_match_nothing, tensors, problems);
  check_names(tensors, problems);
  check_bytes(tensors, problems);
  problems.throw_if_any(checkpoint.path());
  return tensors;
}

// One part of the target's order: it fills the target, as parts cover a target exactly once.
bool is_in_order(const VirtualTensor& tensor) {
  return tensor.parts.size() == 1 && tensor.parts.front().casts.empty() && !tensor.scale_name &&
         in_target_order(tensor.parts.front());
}

bool is_unchanged(const VirtualTensor& tensor) {
  const Part& part = tensor.parts.front();
  return is_in_order(tensor) && part.source.dtype == tensor.dtype && part.source.shape == tensor.shape;
}

DeferredTensor defer(const Checkpoint& checkpoint, TensorInfo tensor) {
  return {checkpoint.shards()[tensor.shard].path, std::move(tensor)};
}

Target make_target(VirtualTensor tensor) {
  Target target;
  const bool in_order = is_in_order(tensor);
  target.quantized = tensor.scale_name.has_value();
  target.assembled = tensor.dtype;
  target.straight = in_order && tensor.parts.front().source.dtype == tensor.dtype;
  target.cast_only = in_order && !target.straight;
  target.tensor.dtype = target.quantized ? Dtype::F8_E4M3 : tensor.dtype;
  target.tensor.size = checked_size(target.tensor.dtype, tensor.shape).value();
  target.tensor.name = std::move(tensor.name);
  target.tensor.shape = std::move(tensor.shape);
  target.parts = std::move(tensor.parts);
  return target;
}

Target make_scale(std::string name) {
  Target scale;
  scale.tensor = {std::move(name), Dtype::F32, {}, sizeof(float)};
  return scale;
}

// Where a tensor is complete: its last byte in the order of reading.
std::pair<std::size_t, Bytes> end_of(const VirtualTensor& tensor) {
  std::pair<std::size_t, Bytes> last;
  for (const Part& part : tensor.parts) last = std::max(last, {part.source.shard, end_in_file(part)});
  return last;
}

void sort_by_end(std::vector<VirtualTensor>& tensors) {
  using Key = std::tuple<std::size_t, Bytes, std::string_view, std::size_t>;
  std::vector<Key> keys;
  keys.reserve(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto [shard, end] = end_of(tensors[i]);
    keys.emplace_back(shard, end, tensors[i].name, i);
  }
  std::ranges::sort(keys);
  std::vector<VirtualTensor> sorted;
  sorted.reserve(tensors.size());
  for (const Key& key : keys) sorted.push_back(std::move(tensors[std::get<3>(key)]));
  tensors = std::move(sorted);
}

void add_targets(PlanState& state, std::vector<VirtualTensor> tensors) {
  state.targets.reserve(tensors.size());
  for (VirtualTensor& tensor : tensors) {
    std::optional<std::string> scale_name = tensor.scale_name;
    state.targets.push_back(make_target(std::move(tensor)));
    if (scale_name) state.targets.push_back(make_scale(std::move(*scale_name)));
  }
  for (const Target& target : state.targets) {
    state.target_tensors.push_back(target.tensor);
    state.target_bytes += target.tensor.size;
  }
}

void add_ranges(PlanState& state) {
  for (std::size_t i = 0; i < state.targets.size(); ++i) {
    const std::vector<Part>& parts = state.targets[i].parts;
    for (std::size_t part = 0; part < parts.size(); ++part) append_ranges(parts[part], i, part, state.ranges);
  }
  std::ranges::sort(state.ranges, {},
                    [](const WantedRange& range) { return std::pair(range.shard, range.offset); });
  for (const WantedRange& range : state.ranges) state.read_bytes += range.size;
}

// What the hook claims leaves the load.
void defer_tensors(PlanState& state, const LoadRequest& request, std::vector<VirtualTensor>& tensors) {
  if (!request.defer) return;
  std::erase_if(tensors, [&](const VirtualTensor& tensor) {
    if (!is_unchanged(tensor)) return false;
    TensorInfo info = tensor.parts.front().source;
    info.name = tensor.name;
    if (!request.defer(info)) return false;
    state.deferred.push_back(defer(state.checkpoint, std::move(info)));
    return true;
  });
}

// The tensor's part in the box; what is wrong with it is told.
VirtualTensor cut_box(const TensorInfo& tensor, std::span<const Interval> box, PlanProblems& problems) {
  VirtualTensor cut(tensor);
  if (box.size() != tensor.shape.size()) {
    problems.misfit(fmt::format("{} has no box of {} dimensions", describe(cut), box.size()));
    return cut;
  }
  for (std::size_t dim = 0; dim < box.size(); ++dim) {
    const std::int64_t begin = box[dim].begin, end = begin + box[dim].extent;
    const std::string reason = why_not_slice(cut, dim, begin, end);
    if (!reason.empty()) {
      problems.misfit(fmt::format("{} {}", describe(cut), reason));
    } else {
      slice(cut, dim, begin, end);
    }
  }
  return cut;
}

LoadPlan plan_as_they_are(const Checkpoint& checkpoint, std::vector<VirtualTensor> tensors) {
  auto state = std::make_shared<PlanState>(checkpoint);
  add_targets(*state, std::move(tensors));
  add_ranges(*state);
  return LoadPlanAccess::make(std::move(state));
}

}  // namespace

LoadPlan plan_box(const Checkpoint& checkpoint, const TensorInfo& tensor, std::span<const Interval> box) {
  PlanProblems problems;
  std::vector<VirtualTensor> tensors;
  tensors.push_back(cut_box(tensor, box, problems));
  if (problems.empty()) check_bytes(tensors, problems);
  problems.throw_if_any(checkpoint.path());
  return plan_as_they_are(checkpoint, std::move(tensors));
}

LoadPlan plan_pieces(const Checkpoint& checkpoint, std::span<const TensorInfo> pieces) {
  std::vector<VirtualTensor> tensors;
  tensors.reserve(pieces.size());
  std::pair<std::size_t, Bytes> end;  // of the pieces so far: shard, and the byte behind the last
  for (const TensorInfo& piece : pieces) {
    check_range(CheckpointAccess::state(checkpoint), piece, 0, piece.size);
    if (const std::pair begin(piece.shard, piece.offset); begin < end) {
      throw Error(ErrorKind::internal, fmt::format("{}: a piece of tensor {} begins before the last one ends",
                                                   checkpoint.path().string(), in_quotes(piece.name)));
    }
    end = {piece.shard, piece.offset + piece.size};
    tensors.emplace_back(piece);
  }
  return plan_as_they_are(checkpoint, std::move(tensors));
}

}  // namespace bytes

LoadPlan plan_load(const Checkpoint& checkpoint, const LoadRequest& request) {
  std::vector<bytes::VirtualTensor> tensors = bytes::decide_tensors(checkpoint, request);
  auto state = std::make_shared<bytes::PlanState>(checkpoint);
  bytes::sort_by_end(tensors);
  bytes::defer_tensors(*state, request, tensors);
  bytes::add_targets(*state, std::move(tensors));
  bytes::add_ranges(*state);
  return LoadPlanAccess::make(std::move(state));
}

const Checkpoint& LoadPlan::checkpoint() const {
  return state_->checkpoint;
}
const std::vector<TargetTensor>& LoadPlan::targets() const {
  return state_->target_tensors;
}
const std::vector<DeferredTensor>& LoadPlan::deferred() const {
  return state_->deferred;
}
Bytes LoadPlan::target_bytes() const {
  return state_->target_bytes;
}
Bytes LoadPlan::read_bytes() const {
  return state_->read_bytes;
}

Bytes LoadPlan::staging_bytes(bool sink_has_memory) const {
  const std::vector<bool> has_memory(state_->targets.size(), sink_has_memory);
  return bytes::peak_staging(*state_, bytes::decide_delivery(*state_, has_memory));
}

}  // namespace sluice
