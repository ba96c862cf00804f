#include "bytes/load/load_pool.h"

#include "bytes/load/read_plan.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

namespace sluice::bytes {
namespace {

// The pool of the load before, for the next one.  Loads at the same time have pools of their own.
std::mutex spare_mutex;
std::unique_ptr<Slab> spare;  // guarded by spare_mutex

Bytes rounded_up(Bytes size) {
  return (size + kCut - 1) / kCut * kCut;
}

void require(bool right, std::string_view name, Bytes value, Bytes least, Bytes most) {
  if (right) return;
  throw Error(ErrorKind::usage, fmt::format("{} of {} is outside its limits", name, format_bytes(value)),
              fmt::format("give {} to {}", format_bytes(least), format_bytes(most)));
}

}  // namespace

LoadPool::LoadPool(const ReadOptions& options) {
  require(options.chunk >= kLeastChunk && options.chunk <= kMostChunk, "a chunk", options.chunk, kLeastChunk,
          kMostChunk);
  require(options.pool >= 2 * kLeastChunk && options.pool <= kMostPool, "a pool", options.pool,
          2 * kLeastChunk, kMostPool);
  limit_ = options.pool;
  chunk_ = std::min(rounded_up(options.chunk), limit_ / 2 / kCut * kCut);
}

LoadPool::~LoadPool() {
  if (!slab_) return;
  std::lock_guard lock(spare_mutex);
  if (!spare || spare->bytes().size() < slab_->bytes().size()) spare = std::move(slab_);
}

std::vector<std::span<std::byte>> LoadPool::buffers(std::size_t most) {
  const std::size_t count = std::max<std::size_t>(2, std::min<std::size_t>(most, limit_ / chunk_));
  if (!slab_) {
    std::lock_guard lock(spare_mutex);
    // A request of the disk holds 254 pieces of memory: 1 MiB of small pages, all of a read in huge ones.
    slab_ = spare ? std::move(spare) : std::make_unique<Slab>(HugePages::always);
  }
  used_ = std::max(used_, count * chunk_);
  slab_->reserve(used_);
  std::vector<std::span<std::byte>> buffers;
  for (std::size_t i = 0; i < count; ++i) buffers.push_back(slab_->bytes().subspan(i * chunk_, chunk_));
  return buffers;
}

std::span<std::byte> LoadPool::memory() const {
  return slab_ ? slab_->bytes().first(used_) : std::span<std::byte>();
}

}  // namespace sluice::bytes
