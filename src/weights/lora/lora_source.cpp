#include "weights/lora/lora_source.h"

#include "aten/low_rank.h"
#include "weights/lora/pair_groups.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace sluice::weights {
namespace {

ComponentTable table_of(const LoraFile& file) {
  return whole_checkpoint("adapter", file.checkpoint);
}

// Two slots, so that the next group's pairs are read while the last ones are used.
StagePlan plan_of(const ComponentTable& table, const PairGroups& pairs, LoraResidence residence) {
  const StageLimits streamed{.resident_blocks = 0, .slots = 2};
  return plan_stage(table, pairs.groups(), residence == LoraResidence::disk ? streamed : StageLimits{});
}

class Adapter {
 public:
  Adapter(const LoraFile& file, std::span<const ParameterGroup* const> order, LoraResidence residence,
          const StageOptions& options)
      : pairs_(file, order), source_(make_source(table_of(file), residence, options)) {}

  // Lends the pairs of the model's group to its matrices.
  void lend_to(const ParameterGroup& base, std::vector<WeightLease>& leases) {
    const ParameterGroup* group = pairs_.beside(base);
    if (!group) return;
    leases.push_back(source_->acquire(*group));
    pairs_.lend_to(base);
  }

  const WeightSource& source() const { return *source_; }

 private:
  std::unique_ptr<WeightSource> make_source(const ComponentTable& table, LoraResidence residence,
                                            const StageOptions& options) const {
    if (residence != LoraResidence::mapped)
      return make_staged_source(table, plan_of(table, pairs_, residence), options);
    return make_weight_source(
        table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint, options.read.cache));
  }

  PairGroups pairs_;
  std::unique_ptr<WeightSource> source_;
};

class LoraSource final : public WeightSource {
 public:
  LoraSource(std::unique_ptr<WeightSource> base, std::span<const LoraFile* const> adapters,
             std::span<const ParameterGroup* const> order, LoraResidence residence,
             const StageOptions& options)
      : base_(std::move(base)) {
    for (const LoraFile* file : adapters) adapters_.emplace_back(*file, order, residence, options);
  }

  WeightLease acquire(const ParameterGroup& group) override {
    // Shared, since a lease's function can be copied; released in the end in any case.
    auto leases = std::make_shared<std::vector<WeightLease>>();
    leases->push_back(base_->acquire(group));
    // A group that is leased already gets the same ones again.
    for (const Parameter& parameter : group.parameters) {
      if (parameter.adapters) parameter.adapters->clear();
    }
    for (Adapter& adapter : adapters_) adapter.lend_to(group, *leases);
    return WeightLease(group, [leases] { leases->clear(); });
  }

  at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) override {
    return base_->rows(table, ids);
  }

  void check() const override {
    base_->check();
    for (const Adapter& adapter : adapters_) adapter.source().check();
  }

  Bytes bytes_read() const override {
    Bytes bytes = base_->bytes_read();
    for (const Adapter& adapter : adapters_) bytes += adapter.source().bytes_read();
    return bytes;
  }

 private:
  const std::unique_ptr<WeightSource> base_;
  std::deque<Adapter> adapters_;
};

}  // namespace

std::unique_ptr<WeightSource> make_lora_source(std::unique_ptr<WeightSource> base,
                                               std::span<const LoraFile* const> adapters,
                                               std::span<const ParameterGroup* const> order,
                                               LoraResidence residence, const StageOptions& options) {
  return std::make_unique<LoraSource>(std::move(base), adapters, order, residence, options);
}

LoraBytes lora_bytes(std::span<const LoraFile* const> adapters, std::span<const ParameterGroup* const> order,
                     LoraResidence residence) {
  LoraBytes bytes;
  for (const LoraFile* file : adapters) {
    const PairGroups pairs(*file, order);
    const StagePlan plan = plan_of(table_of(*file), pairs, residence);
    bytes.once += plan.bytes_once();
    if (residence == LoraResidence::mapped) {
      bytes.page_cache += plan.bytes_once();
    } else {
      bytes.anonymous += plan.memory();
      bytes.again += plan.bytes_per_pass();
    }
  }
  return bytes;
}

}  // namespace sluice::weights
