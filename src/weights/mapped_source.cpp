#include "weights/group_load.h"
#include "weights/stage.h"
#include "weights/stage_ring/stage_ring.h"
#include "weights/stage_shape.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace sluice::weights {
namespace {

using bytes::MappedCheckpoint;

bool is_aligned_for(const void* address, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(address) % (dtype_bits(dtype) / 8) == 0;
}

class MappedSource : public WeightSource {
 public:
  MappedSource(const ComponentTable& table, std::shared_ptr<const MappedCheckpoint> files)
      : table_(table), files_(std::move(files)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    const std::vector<Piece> pieces = pieces_of(table_, group);
    for (const Piece& piece : pieces) files_->prefetch(piece.bytes);
    for (const Piece& piece : pieces) look_at(piece);
    return WeightLease(group);
  }

  at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) override {
    auto [rows, bytes] = read_rows(table_, table, ids);
    rows_read_ += bytes;
    return rows;
  }

  void check() const override { files_->check(); }
  Bytes bytes_read() const override { return viewed_ + rows_read_; }

 protected:
  void look_at(const Piece& piece) {
    // The files count each part once for all sources: what is new with this one.
    const Bytes before = files_->bytes_viewed();
    const std::span<const std::byte> bytes = files_->view(piece.bytes);
    viewed_ += files_->bytes_viewed() - before;
    lend(piece, bytes);
    if (bytes.empty() || is_aligned_for(bytes.data(), piece.bytes.dtype)) return;
    at::Tensor copy = at::empty(piece.slot->sizes(), piece.slot->options());
    std::memcpy(copy.mutable_data_ptr(), bytes.data(), bytes.size());
    *piece.slot = copy;
  }

  const ComponentTable table_;
  const std::shared_ptr<const MappedCheckpoint> files_;
  Bytes rows_read_ = 0;
  Bytes viewed_ = 0;
};

// The runs of the file that the pieces lie in: neighbours are one, since they share pages.
std::vector<TensorInfo> runs_of(const std::vector<Piece>& pieces) {
  constexpr Bytes kGap = KiB(64);
  std::vector<TensorInfo> runs;
  for (const Piece& piece : pieces) runs.push_back(piece.bytes);
  std::ranges::sort(runs, {}, [](const TensorInfo& run) { return std::pair(run.shard, run.offset); });
  std::vector<TensorInfo> joined;
  for (TensorInfo& run : runs) {
    if (run.size == 0) continue;
    TensorInfo* last = joined.empty() ? nullptr : &joined.back();
    if (last && last->shard == run.shard && run.offset <= last->offset + last->size + kGap) {
      last->size = std::max(last->size, run.offset + run.size - last->offset);
    } else {
      joined.push_back(std::move(run));
    }
  }
  return joined;
}

// "Fills" a place by bringing a group's pages into memory, and empties it by letting them go: the places are
// the mapping itself, and the ring only keeps count of how many groups are in memory.
class PageFills final : public FillEngine {
 public:
  PageFills(const MappedCheckpoint& files, std::vector<std::vector<TensorInfo>> runs, std::size_t places)
      : files_(files), runs_(std::move(runs)), group_in_(places, kNone) {}

  void fill(std::size_t group, std::size_t place, const CancelToken* cancel) override {
    release(place);  // what was brought in and never leased
    group_in_[place] = group;
    for (const TensorInfo& run : runs_[group]) {
      files_.bring(run, cancel);
      const std::lock_guard lock(mutex_);
      bytes_ += run.size;
    }
  }
  void wait(std::size_t) override {}
  void release(std::size_t place) noexcept override {
    const std::size_t group = std::exchange(group_in_[place], kNone);
    if (group == kNone) return;
    for (const TensorInfo& run : runs_[group]) files_.drop(run);
  }

  Bytes bytes_brought() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  const MappedCheckpoint& files_;
  const std::vector<std::vector<TensorInfo>> runs_;  // by group
  std::vector<std::size_t> group_in_;                // by place; of whoever has the place
  mutable std::mutex mutex_;
  Bytes bytes_ = 0;  // guarded by mutex_
};

class WindowedSource final : public MappedSource {
 public:
  WindowedSource(const ComponentTable& table, std::shared_ptr<const MappedCheckpoint> files,
                 const StagePlan& plan, StageOptions options)
      : MappedSource(table, std::move(files)),
        options_(std::move(options)),
        fills_(*files_, runs(table, plan), plan.groups.size() + plan.slots),
        ring_(fills_, shape_of(plan, options_.passes), options_.warn) {
    for (std::size_t i = 0; i < plan.groups.size(); ++i) indices_.emplace(plan.groups[i].group, i);
  }

  WeightLease acquire(const ParameterGroup& group) override {
    auto found = indices_.find(&group);
    if (found == indices_.end()) return MappedSource::acquire(group);
    const std::size_t index = found->second;
    ring_.acquire(index, options_.cancel);
    WeightLease lease(group, [this, index] { ring_.release(index); });
    for (const Piece& piece : pieces_of(table_, group)) look_at(piece);
    return lease;
  }

  Bytes bytes_read() const override { return fills_.bytes_brought() + rows_read_; }

 private:
  static std::vector<std::vector<TensorInfo>> runs(const ComponentTable& table, const StagePlan& plan) {
    std::vector<std::vector<TensorInfo>> runs;
    for (const StagePlan::Group& group : plan.groups) runs.push_back(runs_of(pieces_of(table, *group.group)));
    return runs;
  }

  const StageOptions options_;
  std::unordered_map<const ParameterGroup*, std::size_t> indices_;
  PageFills fills_;
  StageRing ring_;  // last: its thread brings in pages
};

}  // namespace

std::unique_ptr<WeightSource> make_weight_source(const ComponentTable& table,
                                                 std::shared_ptr<const MappedCheckpoint> files) {
  return std::make_unique<MappedSource>(table, std::move(files));
}

StagePlan plan_window(const ComponentTable& table, std::span<const ParameterGroup* const> order) {
  return plan_stage(table, order, {.resident_blocks = 0, .slots = 2});
}

std::unique_ptr<WeightSource> make_windowed_source(const ComponentTable& table,
                                                   std::shared_ptr<const MappedCheckpoint> files,
                                                   std::span<const ParameterGroup* const> order,
                                                   StageOptions options) {
  if (!options.warn) options.warn = [](const std::string&) {};
  return std::make_unique<WindowedSource>(table, std::move(files), plan_window(table, order),
                                          std::move(options));
}

}  // namespace sluice::weights
