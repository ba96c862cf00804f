#pragma once
// How a run's weights come into memory: each component as its staging says (staging.h), with the files open
// once for all.  Where the system refuses a mapping that `auto` chose, the component is read instead.

#include "bytes/read/cache_watch.h"
#include "bytes/read/mapped_checkpoint.h"
#include "pipeline/staging.h"
#include "weights/lora/lora_source.h"
#include "weights/weight_source.h"

#include <sluice/progress.h>
#include <sluice/read_options.h>
#include <sluice/sluice.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::pipeline {

// Under a limit the pages of files that a phase brought in are let go of at its end.
CachePolicy cache_policy(const Request& request);

// One thread, the one that makes the run; sources must not outlive it.
class Backends {
 public:
  // `cancel` stops what reads.  `before_each_group` is called whenever a model asks for weights, and may
  // throw to stop it.
  explicit Backends(ReadOptions options, const CancelToken* cancel = nullptr,
                    std::function<void()> before_each_group = {})
      : options_(options), cancel_(cancel), before_each_group_(std::move(before_each_group)) {}

  // As planned; a component without a plan is mapped where the backend allows it, else streamed from disk.
  void stage(const ComponentStaging& staging);

  // `order`: the groups that will be leased, as in a pass.  Error(io) if `mmap` was asked for and the system
  // refuses.
  std::unique_ptr<weights::WeightSource> source(const weights::ComponentTable& table,
                                                std::span<const weights::ParameterGroup* const> order);
  // The same with adapters beside the weights.
  std::unique_ptr<weights::WeightSource> source(const weights::ComponentTable& table,
                                                std::span<const weights::ParameterGroup* const> order,
                                                std::span<const weights::LoraFile* const> adapters,
                                                weights::LoraResidence residence);

  // Error(corrupt_file) if any file changed since it was opened.
  void check() const;

  // After a phase: with `--cache drop`, what it brought into the page cache leaves it.
  void let_go();

  Bytes bytes_read() const { return bytes_read_; }  // by all sources
  Bytes page_cache() const;  // bytes of the checkpoints' files that the system holds in memory now

  bool in_place() const;       // whether what was opened until now is mapped
  std::string chosen() const;  // "mmap"; "direct", "pread", …, several where shards were read in several ways
  std::string reason() const;
  const std::vector<std::string>& warnings() const { return warnings_; }  // of reading, each kind once

 private:
  struct Open {
    Checkpoint checkpoint;
    std::shared_ptr<bytes::MappedCheckpoint> mapped;  // nullptr: it is read
    std::unique_ptr<bytes::CacheWatch> watch;         // of what is read, with `--cache drop`
  };

  std::unique_ptr<weights::WeightSource> plain_source(const weights::ComponentTable& table,
                                                      std::span<const weights::ParameterGroup* const> order);
  Open& open(const Checkpoint& checkpoint, bool to_map);
  void map(Open& files);  // leaves it unmapped where `auto` may read instead
  std::int64_t passes_of(const weights::ComponentTable& table) const;
  weights::StageOptions stage_options(std::int64_t passes);
  void note(const LoadReport& report);

  const ReadOptions options_;
  const CancelToken* cancel_;
  const std::function<void()> before_each_group_;
  std::map<std::string, ComponentStaging> staging_;  // by component
  std::map<std::string, Open> open_;                 // by path
  std::string refusal_;  // why there is no mapping, where there should have been one
  Bytes bytes_read_ = 0;
  std::vector<std::string> ways_;  // in which was read, each once
  std::string read_reason_;        // of the first of them
  std::vector<std::string> warnings_;
};

}  // namespace sluice::pipeline
