#include "bytes/read/chunks.h"

#include "base/thread.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

constexpr Bytes kChunk = MiB(8);
// Below this a thread costs more than it brings.
constexpr Bytes kParallelFrom = MiB(32);
constexpr unsigned kMostThreads = 4;

// Hands out chunks until there is none left or a worker failed.
class ChunkQueue {
 public:
  explicit ChunkQueue(Bytes total) : total_(total) {}

  void work(const std::function<void(Bytes, Bytes)>& move) {
    try {
      while (!failed_) {
        Bytes begin = next_.fetch_add(kChunk);
        if (begin >= total_) return;
        move(begin, std::min(kChunk, total_ - begin));
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (!failed_.exchange(true)) first_ = std::current_exception();
    }
  }

  void rethrow() const {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  const Bytes total_;
  std::atomic<Bytes> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr first_;  // guarded by mutex_ while workers run
};

}  // namespace

void for_each_chunk(Bytes total, const std::function<void(Bytes, Bytes)>& move) {
  unsigned threads = std::min(kMostThreads, std::thread::hardware_concurrency());
  if (total < kParallelFrom || threads < 2) {
    if (total > 0) move(0, total);
    return;
  }
  for_each_chunk(total, threads, move);
}

void for_each_chunk(Bytes total, unsigned threads, const std::function<void(Bytes, Bytes)>& move) {
  threads = static_cast<unsigned>(std::min<Bytes>(threads, (total + kChunk - 1) / kChunk));
  ChunkQueue queue(total);
  {
    std::vector<std::jthread> helpers;
    try {
      for (unsigned i = 1; i < threads; ++i) helpers.push_back(start_thread([&] { queue.work(move); }));
    } catch (const std::system_error&) {
      // No more threads to be had: those that started do the work.
    }
    queue.work(move);
  }
  queue.rethrow();
}

}  // namespace sluice::bytes
