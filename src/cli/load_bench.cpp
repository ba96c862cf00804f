#include "cli/load_bench.h"

#include "base/file.h"
#include "base/process_usage.h"
#include "bytes/read/chunks.h"
#include "cli/cached_share.h"

#include <sluice/error.h>
#include <sluice/memory.h>
#include <sluice/sinks.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <set>
#include <string>

namespace sluice::cli {
namespace {

constexpr unsigned kRawThreads = 4;
constexpr double kMostCold = 0.01, kLeastWarm = 0.99;

struct Arm {
  std::optional<ReadBackend> backend;  // empty: raw preads of whole files
  bool touched = true;
  bool warm = true;
};

std::string name_of(const Arm& arm) {
  return arm.backend ? std::string(to_string(*arm.backend)) : "raw pread";
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

class LoadBench {
 public:
  LoadBench(const Checkpoint& checkpoint, unsigned rounds, Progress& progress, const CancelToken& cancel)
      : checkpoint_(checkpoint),
        plan_(plan_load(checkpoint)),
        rounds_(rounds),
        progress_(progress),
        cancel_(cancel) {
    for (const Shard& shard : checkpoint.shards()) bytes_ += shard.file_size;
  }

  BenchFigures run() {
    require_room();
    touched_ = std::make_shared<Slab>();
    touched_->reserve(std::max(lay_out(plan_).size, bytes_));
    touched_->touch(touched_->bytes().size(), kRawThreads);
    find_arms();
    for (const Arm& arm : arms_) {
      figures_.rows.push_back({.cache = arm.warm ? "warm" : "cold",
                               .into = arm.touched ? "touched" : "fresh",
                               .way = name_of(arm),
                               .backend = name_of(arm),
                               .reason = {},
                               .seconds = {},
                               .cpu_seconds = {}});
    }
    for (unsigned round = 0; round < rounds_; ++round) run_round(round);
    figures_.bytes = plan_.read_bytes();
    figures_.rounds = rounds_;
    return std::move(figures_);
  }

 private:
  void require_room() const {
    const Bytes needed = MemoryNeed{.targets = 2 * bytes_, .pool = kDefaultPool}.total();
    const Bytes available = available_memory();
    if (needed <= available) return;
    throw Error(ErrorKind::does_not_fit,
                fmt::format("not enough memory to measure with {}: needs {} (the file's size twice), {} "
                            "available",
                            format_bytes(bytes_), format_bytes(needed), format_bytes(available)),
                "measure with a file that is made: leave the path out, and give a smaller --size");
  }

  // Every way once, which also warms up what is kept between loads; then the conditions that can be had.
  void find_arms() {
    std::vector<std::optional<ReadBackend>> ways = {std::nullopt};
    for (ReadBackend backend : {ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                                ReadBackend::direct, ReadBackend::uring}) {
      if (is_possible(backend)) ways.push_back(backend);
    }
    const double warm = fill_cache(checkpoint_, cancel_);
    const double cold = empty_cache(checkpoint_);
    if (warm < kLeastWarm)
      figures_.left_out.push_back(
          fmt::format("warm: only {} of the file stays in the page cache", percent(warm)));
    if (cold > kMostCold)
      figures_.left_out.push_back(
          fmt::format("cold: the page cache could not be emptied, {} of the file stayed", percent(cold)));
    for (const bool is_warm : {true, false}) {
      if (is_warm ? warm < kLeastWarm : cold > kMostCold) continue;
      for (const bool is_touched : {true, false})
        for (const auto& way : ways) arms_.push_back({way, is_touched, is_warm});
    }
  }

  bool is_possible(ReadBackend backend) {
    try {
      LoadReport report;
      load_dictionary(plan_, touched_, {.backend = backend}, &report, nullptr, &cancel_);
      const bool other =
          backend == ReadBackend::uring && std::ranges::any_of(report.shards, [](const auto& shard) {
            return !shard.backend.starts_with("uring");
          });
      if (!other) return true;
      figures_.left_out.push_back(
          fmt::format("uring: {}", report.warnings.empty() ? "refused" : report.warnings.front()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      figures_.left_out.push_back(fmt::format("{}: {}", to_string(backend), error.what()));
    }
    return false;
  }

  void run_round(unsigned round) {
    std::vector<std::size_t> order(arms_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::mt19937 random(round);
    std::ranges::shuffle(order, random);
    for (std::size_t i : order) {
      prepare_cache(arms_[i].warm);
      run_arm(arms_[i], figures_.rows[i]);
      const auto total = static_cast<std::int64_t>(arms_.size() * rounds_);
      progress_.at("measure", ++runs_, total, "runs");
    }
  }

  // Pages are filled by plain reading only: what a way of reading leaves in the page cache comes in pieces of
  // other sizes, and the next one would be measured with those.
  void prepare_cache(bool warm) {
    if (warm && filled_) return;
    empty_cache(checkpoint_);
    if (warm) fill_cache(checkpoint_, cancel_);
    filled_ = warm;
  }

  void run_arm(const Arm& arm, BenchRow& row) {
    const std::shared_ptr<Slab> slab = arm.touched ? touched_ : std::make_shared<Slab>();
    const ProcessUsage before = process_usage();
    LoadReport report;
    if (arm.backend) {
      load_dictionary(plan_, slab, {.backend = *arm.backend}, &report, nullptr, &cancel_);
    } else {
      read_raw(*slab);
    }
    const UsedBetween used = process_usage() - before;
    row.seconds.push_back(used.seconds);
    row.cpu_seconds.push_back(used.cpu_seconds);
    if (!arm.backend) return;
    std::set<std::string> backends;
    for (const ShardLoadReport& shard : report.shards) backends.insert(shard.backend);
    row.backend = fmt::format("{}", fmt::join(backends, ", "));
    if (!report.shards.empty()) row.reason = report.shards.front().reason;
  }

  // All files one behind the other.
  void read_raw(Slab& slab) const {
    slab.reserve(bytes_);
    Bytes at = 0;
    for (const Shard& shard : checkpoint_.shards()) {
      const File file = File::open(shard.path);
      bytes::for_each_chunk(shard.file_size, kRawThreads, [&](Bytes begin, Bytes size) {
        if (cancel_.cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
        read_exact(file, slab.bytes().subspan(at + begin, size), begin, "the file");
      });
      at += shard.file_size;
    }
  }

  const Checkpoint& checkpoint_;
  const LoadPlan plan_;
  const unsigned rounds_;
  Progress& progress_;
  const CancelToken& cancel_;
  Bytes bytes_ = 0;                // of the files
  std::shared_ptr<Slab> touched_;  // for all runs into touched memory
  std::vector<Arm> arms_;
  BenchFigures figures_;  // a row an arm
  std::int64_t runs_ = 0;
  bool filled_ = false;  // the page cache, by prepare_cache()
};

}  // namespace

BenchFigures bench_load(const Checkpoint& checkpoint, unsigned rounds, Progress& progress,
                        const CancelToken& cancel) {
  return LoadBench(checkpoint, rounds, progress, cancel).run();
}

}  // namespace sluice::cli
