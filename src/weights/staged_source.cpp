#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "weights/load_fills.h"
#include "weights/stage.h"
#include "weights/stage_ring/stage_ring.h"
#include "weights/stage_shape.h"

#include <sluice/error.h>
#include <sluice/slab.h>

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <unordered_map>
#include <utility>

namespace sluice::weights {
namespace {

// Memory of a plan: a place for each group that stays, then the slots.
class Places {
 public:
  Places(const StagePlan& plan, std::span<const GroupLoad> loads) {
    slab_.reserve(plan.memory());
    Bytes at = 0;
    auto next = [&](Bytes size) {
      const std::span<std::byte> place = slab_.bytes().subspan(at, size);
      at += size;
      return place;
    };
    for (std::size_t i = 0; i < loads.size(); ++i)
      spans_.push_back(plan.groups[i].resident ? next(size_in_memory(loads[i])) : std::span<std::byte>());
    for (std::size_t slot = 0; slot < plan.slots; ++slot) spans_.push_back(next(plan.slot_bytes));
  }

  std::span<const std::span<std::byte>> spans() const { return spans_; }

 private:
  Slab slab_;
  std::vector<std::span<std::byte>> spans_;
};

// The same groups in less memory; false if there is no less.
bool shrink(StagePlan& plan, const ComponentTable& table) {
  const StagePlan before = plan;
  std::vector<const ParameterGroup*> order;
  for (const StagePlan::Group& group : plan.groups) order.push_back(group.group);
  const std::size_t kept = plan.large_resident();
  StageLimits limits{.resident_blocks = kept, .slots = plan.slots};
  if (plan.slots > 1) {
    limits.slots = plan.slots - 1;
  } else {
    limits = {.resident_blocks = kept / 2, .slots = 1};
  }
  plan = plan_stage(table, order, limits);
  return plan.memory() < before.memory();
}

// Everything that exists from the first lease on.
struct Stage {
  Stage(const StagePlan& plan, std::span<const GroupLoad> loads, const StageOptions& options)
      : places(plan, loads),
        fills(loads, places.spans(), options.read),
        ring(fills, shape_of(plan, options.passes), options.warn) {}

  Places places;
  LoadFills fills;
  StageRing ring;  // last: its thread fills the places
};

class StagedSource final : public WeightSource {
 public:
  StagedSource(const ComponentTable& table, StagePlan plan, StageOptions options)
      : table_(table), plan_(std::move(plan)), options_(std::move(options)) {
    if (!options_.warn) options_.warn = [](const std::string&) {};
    for (std::size_t i = 0; i < plan_.groups.size(); ++i) {
      loads_.push_back(plan_group(table_, *plan_.groups[i].group));
      indices_.emplace(plan_.groups[i].group, i);
    }
  }

  ~StagedSource() override {
    if (!stage_) return;
    stage_->ring.stop();
    try {
      tell();  // of what was read ahead and never leased
    } catch (const std::exception&) {
      // Nobody is left to hear of it.
    }
  }

  WeightLease acquire(const ParameterGroup& group) override {
    const std::size_t index = index_of(group);
    if (!stage_) set_up();
    const std::size_t place = acquire_place(index);
    lend(loads_[index], stage_->places.spans()[place]);
    return WeightLease(group, [this, index] { stage_->ring.release(index); });
  }

  at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) override {
    auto [rows, bytes] = read_rows(table_, table, ids);
    rows_read_ += bytes;
    return rows;
  }

  void check() const override { bytes::require_unchanged(CheckpointAccess::state(table_.checkpoint)); }
  Bytes bytes_read() const override { return rows_read_ + (stage_ ? stage_->fills.bytes_read() : 0); }

 private:
  std::size_t index_of(const ParameterGroup& group) const {
    auto found = indices_.find(&group);
    if (found != indices_.end()) return found->second;
    throw Error(ErrorKind::internal,
                fmt::format("{}: group '{}' is not in the plan", table_.name, group.name));
  }

  // Steps down where the system refuses memory.
  void set_up() {
    while (true) {
      try {
        stage_.emplace(plan_, loads_, options_);
        return;
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::does_not_fit || !shrink(plan_, table_)) throw;
        options_.warn(fmt::format("{}: {}: {} of {} blocks stay in memory, slots for the others: {}",
                                  table_.name, error.what(), plan_.large_resident(), plan_.large_groups(),
                                  plan_.slots));
      }
    }
  }

  std::size_t acquire_place(std::size_t index) try {
    const std::size_t place = stage_->ring.acquire(index, options_.cancel);
    tell();
    return place;
  } catch (...) {
    tell();
    throw;
  }

  void tell() {
    const LoadFills::News news = stage_->fills.take_news();
    for (const std::string& warning : news.warnings) options_.warn(warning);
    if (!options_.loaded) return;
    for (const LoadReport& report : news.reports) options_.loaded(report);
  }

  const ComponentTable table_;
  StagePlan plan_;
  StageOptions options_;
  std::vector<GroupLoad> loads_;
  std::unordered_map<const ParameterGroup*, std::size_t> indices_;
  std::optional<Stage> stage_;
  Bytes rows_read_ = 0;
};

}  // namespace

std::unique_ptr<WeightSource> make_staged_source(const ComponentTable& table, StagePlan plan,
                                                 StageOptions options) {
  return std::make_unique<StagedSource>(table, std::move(plan), std::move(options));
}

}  // namespace sluice::weights
