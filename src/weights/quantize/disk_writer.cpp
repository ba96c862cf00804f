#include "weights/quantize/disk_writer.h"

#include "base/temporary_file.h"
#include "base/thread.h"
#include "bytes/format/checksum.h"
#include "weights/quantize/write_behind.h"

#include <sluice/error.h>
#include <sluice/slab.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

namespace sluice::weights {
namespace {

// Where the filling thread and the writing one meet: blocks go round, full ones in order.
class BlockQueue {
 public:
  explicit BlockQueue(std::size_t blocks) : blocks_(blocks) {
    for (std::size_t i = 0; i < blocks; ++i) free_.push_back(i);
  }

  struct Full {
    std::size_t block = 0, size = 0;
  };

  // Waits for a free block; throws what the writing thread has met.
  std::size_t take_free() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || !free_.empty(); });
    throw_error();
    const std::size_t block = free_.back();
    free_.pop_back();
    return block;
  }
  void put_full(Full full) {
    std::lock_guard lock(mutex_);
    full_.push_back(full);
    changed_.notify_all();
  }
  void put_free(std::size_t block) {
    std::lock_guard lock(mutex_);
    free_.push_back(block);
    changed_.notify_all();
  }
  // Until all blocks are free again.
  void wait_until_written() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || free_.size() == blocks_; });
    throw_error();
  }

  // For the writing thread: empty after stop().
  std::optional<Full> take_full() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || !full_.empty(); });
    if (stopped_) return std::nullopt;
    const Full full = full_.front();
    full_.pop_front();
    return full;
  }
  void fail(std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (!error_) error_ = std::move(error);
    changed_.notify_all();
  }
  void stop() {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  void throw_error() const {
    if (error_) std::rethrow_exception(error_);
  }

  const std::size_t blocks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> free_;  // guarded by mutex_
  std::deque<Full> full_;         // guarded by mutex_
  std::exception_ptr error_;      // guarded by mutex_
  bool stopped_ = false;          // guarded by mutex_
};

}  // namespace

struct DiskWriter::State {
  explicit State(WriteBlocks asked) : blocks(asked), queue(asked.blocks) {
    memory.reserve(asked.memory());
    try {
      thread = start_thread([this] { write(); });
    } catch (const std::system_error&) {
      // Where the system has no thread left, blocks are written as they are filled.
    }
  }
  ~State() { queue.stop(); }

  std::span<std::byte> block(std::size_t number) const {
    return memory.bytes().subspan(number * blocks.block, blocks.block);
  }

  void write() {
    while (const auto full = queue.take_full()) {
      try {
        write(*full);
      } catch (...) {
        queue.fail(std::current_exception());
      }
    }
  }

  void write(BlockQueue::Full full) {
    file->append(block(full.block).first(full.size));
    queue.put_free(full.block);
  }

  void hand_over() {
    checksum.add(block(*current).first(used));
    size += used;
    const BlockQueue::Full full{*std::exchange(current, std::nullopt), std::exchange(used, 0)};
    if (thread.joinable()) {
      queue.put_full(full);
    } else {
      write(full);
    }
  }

  const WriteBlocks blocks;
  Slab memory{HugePages::always};  // a request of the disk holds 254 pages of memory, huge or small
  BlockQueue queue;
  std::optional<TemporaryFile> temporary;
  std::optional<WriteBehind> file;     // the writing thread's while there are full blocks
  std::optional<std::size_t> current;  // the block that is being filled
  std::size_t used = 0;                // of it
  bytes::Checksum checksum;
  Bytes size = 0;
  std::jthread thread;  // ends before what it uses
};

DiskWriter::DiskWriter(WriteBlocks blocks) : state_(std::make_unique<State>(blocks)) {}
DiskWriter::~DiskWriter() = default;

void DiskWriter::begin(const std::filesystem::path& target) {
  state_->temporary.emplace(target);
  state_->file.emplace(state_->temporary->path(), target);
  state_->checksum.reset();
  state_->size = 0;
}

std::span<std::byte> DiskWriter::room() {
  State& state = *state_;
  if (!state.current) state.current = state.queue.take_free();
  return state.block(*state.current).subspan(state.used);
}

void DiskWriter::filled(std::size_t size) {
  state_->used += size;
  if (state_->used == state_->blocks.block) state_->hand_over();
}

void DiskWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::span<std::byte> to = room();
    const std::size_t count = std::min(to.size(), bytes.size());
    std::memcpy(to.data(), bytes.data(), count);
    filled(count);
    bytes = bytes.subspan(count);
  }
}

WrittenFile DiskWriter::finish() {
  State& state = *state_;
  if (state.current && state.used > 0) state.hand_over();
  if (state.current) state.queue.put_free(*std::exchange(state.current, std::nullopt));
  state.queue.wait_until_written();
  state.file.reset();
  state.temporary->commit();
  state.temporary.reset();
  return {state.size, state.checksum.text()};
}

}  // namespace sluice::weights
