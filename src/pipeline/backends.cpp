#include "pipeline/backends.h"

#include "base/log.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "bytes/read/page_cache.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace sluice::pipeline {
namespace {

// Tells of every lease before it is given, and adds what is read to a sum that outlives the source.
class ObservedSource final : public weights::WeightSource {
 public:
  ObservedSource(std::unique_ptr<weights::WeightSource> source, std::function<void()> before_each_group,
                 Bytes& total)
      : source_(std::move(source)), before_each_group_(std::move(before_each_group)), total_(total) {}
  ~ObservedSource() override { count(); }

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    if (before_each_group_) before_each_group_();
    weights::WeightLease lease = source_->acquire(group);
    count();
    return lease;
  }
  at::Tensor rows(const weights::Parameter& table, std::span<const std::int64_t> ids) override {
    return source_->rows(table, ids);
  }
  void check() const override { source_->check(); }
  Bytes bytes_read() const override { return source_->bytes_read(); }

 private:
  void count() {
    const Bytes now = source_->bytes_read();
    total_ += now - std::exchange(counted_, now);
  }

  std::unique_ptr<weights::WeightSource> source_;
  std::function<void()> before_each_group_;
  Bytes& total_;
  Bytes counted_ = 0;
};

void add_once(std::vector<std::string>& lines, const std::string& line) {
  if (std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
}

}  // namespace

CachePolicy cache_policy(const Request& request) {
  if (request.memory_limit && request.cache == CachePolicy::automatic) return CachePolicy::drop;
  return request.cache;
}

void Backends::stage(const ComponentStaging& staging) {
  staging_.insert_or_assign(staging.component, staging);
}

std::unique_ptr<weights::WeightSource> Backends::source(
    const weights::ComponentTable& table, std::span<const weights::ParameterGroup* const> order) {
  return source(table, order, {}, weights::LoraResidence::mapped);
}

std::unique_ptr<weights::WeightSource> Backends::source(const weights::ComponentTable& table,
                                                        std::span<const weights::ParameterGroup* const> order,
                                                        std::span<const weights::LoraFile* const> adapters,
                                                        weights::LoraResidence residence) {
  auto own = plain_source(table, order);
  if (!adapters.empty())
    own = weights::make_lora_source(std::move(own), adapters, order, residence,
                                    stage_options(passes_of(table)));
  return std::make_unique<ObservedSource>(std::move(own), before_each_group_, bytes_read_);
}

std::unique_ptr<weights::WeightSource> Backends::plain_source(
    const weights::ComponentTable& table, std::span<const weights::ParameterGroup* const> order) {
  const auto planned = staging_.find(table.name);
  ComponentStaging staging;
  if (planned != staging_.end()) {
    staging = planned->second;
  } else {
    staging.residence = may_map(options_.backend) ? Residence::mapped : Residence::disk;
    staging.limits.resident_blocks = 0;
  }
  const bool to_map = staging.residence == Residence::mapped || staging.residence == Residence::window;
  if (const Open& files = open(table.checkpoint, to_map); to_map && files.mapped) {
    return staging.residence == Residence::window ? weights::make_windowed_source(table, files.mapped, order)
                                                  : weights::make_weight_source(table, files.mapped);
  }
  // Instead of a mapping that was refused: nothing stays but what is in use.
  if (to_map) staging.limits = {.resident_blocks = 0};
  return weights::make_staged_source(table, plan_stage(table, order, staging.limits),
                                     stage_options(staging.passes));
}

std::int64_t Backends::passes_of(const weights::ComponentTable& table) const {
  const auto planned = staging_.find(table.name);
  return planned == staging_.end() ? 1 : planned->second.passes;
}

weights::StageOptions Backends::stage_options(std::int64_t passes) {
  return {.read = options_,
          .loaded = [this](const LoadReport& report) { note(report); },
          .warn =
              [this](const std::string& warning) {
                log_warning(warning);
                add_once(warnings_, warning);
              },
          .cancel = cancel_,
          .passes = static_cast<std::size_t>(passes)};
}

Backends::Open& Backends::open(const Checkpoint& checkpoint, bool to_map) {
  const std::string path = checkpoint.path().string();
  auto [entry, fresh] = open_.try_emplace(path, Open{checkpoint, nullptr, nullptr});
  Open& files = entry->second;
  if (to_map && !files.mapped && refusal_.empty()) map(files);
  if (!files.mapped && !files.watch && options_.cache == CachePolicy::drop)
    files.watch = std::make_unique<bytes::CacheWatch>(checkpoint);
  return files;
}

void Backends::map(Open& files) {
  try {
    files.mapped = std::make_shared<bytes::MappedCheckpoint>(files.checkpoint, options_.cache);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io || options_.backend != ReadBackend::automatic) throw;
    refusal_ = error.what();
    log_warning(fmt::format("{}: reading instead", error.what()));
  }
}

void Backends::note(const LoadReport& report) {
  for (const ShardLoadReport& shard : report.shards) {
    if (ways_.empty()) read_reason_ = shard.reason;
    add_once(ways_, shard.backend);
  }
  for (const std::string& warning : report.warnings) add_once(warnings_, warning);
}

void Backends::check() const {
  for (const auto& [path, files] : open_) {
    if (files.mapped) {
      files.mapped->check();
    } else {
      bytes::require_unchanged(CheckpointAccess::state(files.checkpoint));
    }
  }
}

void Backends::let_go() {
  for (auto& [path, files] : open_) {
    if (files.mapped) files.mapped->let_go();
    if (files.watch) files.watch->drop();
  }
}

Bytes Backends::page_cache() const {
  Bytes total = 0;
  for (const auto& [path, files] : open_) {
    for (const File& file : CheckpointAccess::state(files.checkpoint).files)
      total += bytes::cached_bytes(file);
  }
  return total;
}

bool Backends::in_place() const {
  return std::ranges::any_of(open_, [](const auto& entry) { return entry.second.mapped != nullptr; });
}

std::string Backends::chosen() const {
  std::vector<std::string> ways = ways_;
  if (in_place()) ways.insert(ways.begin(), "mmap");
  return ways.empty() ? "none" : fmt::format("{}", fmt::join(ways, ", "));
}

std::string Backends::reason() const {
  if (options_.backend != ReadBackend::automatic) return "asked for";
  if (!refusal_.empty())
    return fmt::format("the system refused a mapping ({}){}{}", refusal_, read_reason_.empty() ? "" : "; ",
                       read_reason_);
  if (in_place()) return "weights are computed from where they lie, without a copy";
  return read_reason_.empty() ? "nothing was read" : read_reason_;
}

}  // namespace sluice::pipeline
