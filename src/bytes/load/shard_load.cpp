#include "bytes/load/shard_load.h"

#include "base/text.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/load/shard_pass.h"
#include "bytes/read/choose_reader.h"
#include "bytes/read/direct_file.h"

#include <sluice/error.h>
#include <sluice/memory.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

namespace sluice::bytes {
namespace {

// Buffers beyond one a reader: one with the consumer, one ready for it.
constexpr std::size_t kSpareBuffers = 2;

// Everything about one shard that steps of the load need.
class Loading {
 public:
  Loading(const ShardLoad& work, const ReadOptions& options, LoadPool& pool, LoadWarnings& warnings)
      : work_(work),
        options_(options),
        pool_(pool),
        warn_([&warnings](const std::string& line) { warnings.add(line); }),
        state_(CheckpointAccess::state(work.plan.checkpoint)),
        file_(state_.files[work.shard]) {
    pass_.ranges = work.ranges;
    pass_.addresses = range_addresses(work.plan, work.ranges, work.deliverer.destinations());
    facts_ = facts();
    choose();
  }

  ShardLoadReport run(const CancelToken* cancel, const std::function<void(Bytes)>& delivered) {
    const ConsumeRead consume = [&](const Read& read, std::span<const std::byte> bytes) {
      work_.deliverer.deliver(read, work_.ranges, pass_.addresses, bytes);
      delivered(wanted_of(read));
    };
    std::optional<Prefetch> ahead;
    if (choice_.prefetch) {
      ahead.emplace(file_, pass_.ranges.front().offset, end_of_ranges());
      pass_.prefetch = &*ahead;
    }
    if (choice_.ring) {
      if (auto report = run_ring(consume, cancel)) return *report;
    }
    return run_threads(consume, cancel);
  }

 private:
  void choose() {
    choice_ = choose_reader(facts_, options_, std::max(1u, std::thread::hardware_concurrency()));
  }

  ShardFacts facts() const {
    ShardFacts facts = collect_facts(file_, options_);
    for (const WantedRange& range : work_.ranges) facts.wanted += range.size;
    const std::vector<Read> reads = plan_reads(work_.ranges, {.chunk = pool_.chunk()});
    facts.small_reads = static_cast<std::size_t>(
        std::ranges::count_if(reads, [](const Read& read) { return read.size < KiB(64); }));
    facts.available_memory = available_memory();
    return facts;
  }

  Bytes end_of_ranges() const { return pass_.ranges.back().offset + pass_.ranges.back().size; }

  Bytes wanted_of(const Read& read) const {
    Bytes wanted = 0;
    for (std::size_t i = read.first; i < read.last; ++i) wanted += segment_of(read, pass_.ranges, i).size;
    return wanted;
  }

  std::string describe(Bytes offset) const {
    auto behind = std::ranges::upper_bound(work_.ranges, offset, {}, &WantedRange::offset);
    const WantedRange& range = behind == work_.ranges.begin() ? *behind : *std::prev(behind);
    return fmt::format("tensor {}",
                       in_quotes(work_.plan.targets[range.target].parts[range.part].source.name));
  }
  DescribeOffset describer() const {
    return [this](Bytes offset) { return describe(offset); };
  }

  // The pass drops behind itself in this scope, if that was chosen; else nobody asks what is resident.
  class WindowOfPass {
   public:
    WindowOfPass(Loading& loading, CacheWindow::Unmap unmap) : pass_(loading.pass_) {
      if (!loading.choice_.drop_behind) return;
      window_.emplace(loading.file_, std::move(unmap));
      pass_.window = &*window_;
    }
    ~WindowOfPass() { pass_.window = nullptr; }
    WindowOfPass(const WindowOfPass&) = delete;
    WindowOfPass& operator=(const WindowOfPass&) = delete;

   private:
    ShardPass& pass_;
    std::optional<CacheWindow> window_;
  };

  // Reads, their routes and the buffers that they need.
  void plan_pass(const RouteLimits& limits, std::size_t readers) {
    pass_.alignment = limits.alignment;
    pass_.reads = plan_reads(work_.ranges, {.chunk = pool_.chunk(), .edge = limits.alignment.offset});
    pass_.routes.clear();
    std::size_t pooled = 0;
    for (const Read& read : pass_.reads) {
      pass_.routes.push_back(route_of(read, pass_.ranges, pass_.addresses, limits));
      if (pass_.routes.back() == Route::pooled) ++pooled;
    }
    if (pooled > 0) pass_.buffers = pool_.buffers(std::min(pooled, readers + kSpareBuffers));
    pass_.touch = work_.fresh;
  }

  ShardLoadReport report(std::string backend, unsigned threads, std::uint64_t requests) const {
    return {.path = file_.path(),
            .backend = std::move(backend),
            .reason = choice_.reason,
            .threads = threads,
            .bytes = facts_.wanted,
            .requests = requests,
            .touch_seconds = static_cast<double>(pass_.touch_nanoseconds) * 1e-9 / std::max(1u, threads),
            .cached_before = facts_.cached_share};
  }

  // Empty where the system refuses a ring; reading with threads is as good.
  std::optional<ShardLoadReport> run_ring(const ConsumeRead& consume, const CancelToken* cancel) {
    const unsigned depth = std::min(options_.depth == 0 ? kDefaultDepth : options_.depth, kMostDepth);
    bool direct = choice_.way == ReadWay::direct;
    std::optional<Ring> ring;
    try {
      RouteLimits limits{.alignment = direct ? open_direct(file_).alignment : ReadAlignment{},
                         .scatter = false};
      plan_pass(limits, depth);
      ring.emplace(file_, direct, depth, pass_.buffers.empty() ? std::span<std::byte>() : pool_.memory(),
                   describer(), warn_, state_.identities[work_.shard].size);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io) throw;
      warn_(fmt::format("{}: reading with threads instead", error.what()));
      choice_.way = ReadWay::pread;
      return std::nullopt;
    }
    const WindowOfPass window(*this, {});
    if (run_with_ring(pass_, *ring, consume, cancel))
      return report(direct ? "uring direct" : "uring", 1, ring->requests());
    warn_(fmt::format("{}: the system refused the thread of an io_uring", file_.path().string()));
    return std::nullopt;
  }

  std::unique_ptr<ShardReader> open_reader() {
    const Bytes size = state_.identities[work_.shard].size;
    try {
      return open_shard_reader(choice_.way, file_, describer(), warn_, size);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::io || options_.backend != ReadBackend::automatic) throw;
      warn_(fmt::format("{}: reading through the page cache instead", error.what()));
      facts_.direct_possible = false;
      choose();
      return open_shard_reader(choice_.way, file_, describer(), warn_, size);
    }
  }

  ShardLoadReport run_threads(const ConsumeRead& consume, const CancelToken* cancel) {
    const std::unique_ptr<ShardReader> reader = open_reader();
    plan_pass({.alignment = reader->alignment(), .scatter = reader->alignment().offset == 1},
              choice_.threads);
    pass_.threads = static_cast<unsigned>(std::min<std::size_t>(choice_.threads, pass_.reads.size()));
    const WindowOfPass window(*this, [&](Bytes begin, Bytes end) { reader->let_go(begin, end); });
    run_with_threads(pass_, *reader, consume, cancel, warn_);
    return report(std::string(to_string(reader->way())), pass_.threads, reader->requests());
  }

  const ShardLoad& work_;
  const ReadOptions& options_;
  LoadPool& pool_;
  const Warn warn_;
  const CheckpointAccess::State& state_;
  const File& file_;
  ShardPass pass_;
  ShardFacts facts_;
  ReadChoice choice_;
};

}  // namespace

ShardLoadReport load_shard(const ShardLoad& work, const ReadOptions& options, LoadPool& pool,
                           LoadWarnings& warnings, const CancelToken* cancel,
                           const std::function<void(Bytes)>& delivered) {
  return Loading(work, options, pool, warnings).run(cancel, delivered);
}

}  // namespace sluice::bytes
