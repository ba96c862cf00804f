#include "pipeline/backends.h"

#include "base/log.h"
#include "bytes/page_cache.h"

#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

class ObservedSource final : public weights::WeightSource {
 public:
  ObservedSource(std::unique_ptr<weights::WeightSource> source, std::function<void()> before_each_group)
      : source_(std::move(source)), before_each_group_(std::move(before_each_group)) {}

  weights::WeightLease acquire(const weights::ParameterGroup& group) override {
    before_each_group_();
    return source_->acquire(group);
  }
  void check() const override { source_->check(); }
  Bytes bytes_read() const override { return source_->bytes_read(); }

 private:
  std::unique_ptr<weights::WeightSource> source_;
  std::function<void()> before_each_group_;
};

}  // namespace

std::unique_ptr<weights::WeightSource> Backends::source(const weights::ComponentTable& table) {
  auto source = weights::make_weight_source(table, backend_for(table.checkpoint));
  if (!before_each_group_) return source;
  return std::make_unique<ObservedSource>(std::move(source), before_each_group_);
}

std::shared_ptr<const bytes::ReadBackend> Backends::backend_for(const Checkpoint& checkpoint) {
  auto [entry, fresh] = open_.try_emplace(checkpoint.path().string(), Open{checkpoint, nullptr});
  Open& open = entry->second;
  if (!fresh && open.backend) return open.backend;
  if (choice_ != ReadBackend::automatic) {
    open.backend = bytes::make_backend(
        choice_ == ReadBackend::mmap ? bytes::BackendKind::mmap : bytes::BackendKind::pread, checkpoint);
    return open.backend;
  }
  try {
    open.backend = bytes::make_backend(bytes::BackendKind::mmap, checkpoint);
    reason_ = "weights are computed from where they lie, without a copy";
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::io) throw;
    reason_ = fmt::format("the system refused a mapping ({})", error.what());
    log_warning(
        fmt::format("{}: reading instead, which keeps a copy of each component in memory", error.what()));
    open.backend = bytes::make_backend(bytes::BackendKind::pread, checkpoint);
  }
  return open.backend;
}

void Backends::check() const {
  for (const auto& [path, open] : open_) open.backend->check();
}

Bytes Backends::bytes_read() const {
  Bytes total = 0;
  for (const auto& [path, open] : open_) total += open.backend->bytes_read();
  return total;
}

Bytes Backends::page_cache() const {
  Bytes total = 0;
  for (const auto& [path, open] : open_) {
    for (const Shard& shard : open.checkpoint.shards()) total += bytes::cached_bytes(shard.path);
  }
  return total;
}

std::string Backends::chosen() const {
  if (open_.empty()) return "none";
  return std::string(bytes::to_string(open_.begin()->second.backend->kind()));
}

}  // namespace sluice::pipeline
