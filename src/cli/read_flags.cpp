#include "cli/read_flags.h"

#include "bytes/load/load_pool.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::cli {
namespace {

constexpr unsigned kMostThreads = 1024;  // as of the commands that compute

// 0 is what was not given.
void require_at_most(const char* flag, unsigned value, unsigned most) {
  if (value <= most) return;
  throw Error(ErrorKind::usage, fmt::format("{} {} is impossible", flag, value),
              fmt::format("give a number between 1 and {}", most));
}

}  // namespace

void ReadFlags::add_to(CLI::App& command) {
  const char* group = "Reading";
  command
      .add_option("--read-backend", backend_,
                  "auto (chosen for each shard, see -v), mmap, pread, direct (past the page cache) or uring")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--cache", cache_,
                  "the page cache: auto, keep, drop (what reading brought in is let go) or prefetch")
      ->capture_default_str()
      ->group(group);
  command.add_option("--threads", values_.threads, "that read (default: by backend, at most 4)")
      ->group(group);
  command.add_option("--depth", values_.depth, "io_uring requests in flight (default 8)")->group(group);
  command
      .add_option("--chunk", chunk_,
                  fmt::format("of one read (default {}; {} to {})", format_bytes(kDefaultChunk),
                              format_bytes(kLeastChunk), format_bytes(kMostChunk)))
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option("--pool", pool_,
                  fmt::format("buffers for what cannot be read into place (default {}; at most {})",
                              format_bytes(kDefaultPool), format_bytes(kMostPool)))
      ->type_name("SIZE")
      ->group(group);
  command
      .add_option("--small-reads-cap", values_.small_reads_cap,
                  "with more small reads than this, auto reads through the page cache")
      ->capture_default_str()
      ->group(group);
}

ReadOptions ReadFlags::options() const {
  ReadOptions options = values_;
  require_at_most("--threads", options.threads, kMostThreads);
  require_at_most("--depth", options.depth, kMostDepth);
  options.backend = parse_read_backend(backend_);
  options.cache = parse_cache_policy(cache_);
  if (!chunk_.empty()) options.chunk = parse_bytes(chunk_);
  if (!pool_.empty()) options.pool = parse_bytes(pool_);
  bytes::LoadPool check(options);  // takes no memory yet
  return options;
}

}  // namespace sluice::cli
