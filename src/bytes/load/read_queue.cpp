#include "bytes/load/read_queue.h"

#include <sluice/error.h>

#include <chrono>
#include <utility>

namespace sluice::bytes {
namespace {

// How long a cancelled load may go on waiting: nobody wakes the consumer for it.
constexpr auto kCancelPeriod = std::chrono::milliseconds(50);

}  // namespace

ReadQueue::ReadQueue(std::vector<bool> needs_buffer, std::vector<std::span<std::byte>> buffers)
    : needs_buffer_(std::move(needs_buffer)), free_(std::move(buffers)), done_(needs_buffer_.size()) {}

bool ReadQueue::can_take() const {
  return stopped_ || next_take_ == needs_buffer_.size() || !needs_buffer_[next_take_] || !free_.empty();
}

// Buffer and number are taken in one step.  Were a number taken first, later reads could hold all buffers
// while the consumer waits for this one.
std::optional<ReadTask> ReadQueue::take_now() {
  if (stopped_ || next_take_ == needs_buffer_.size()) return std::nullopt;
  ReadTask task{next_take_++, {}};
  if (needs_buffer_[task.read]) {
    task.buffer = free_.back();
    free_.pop_back();
  }
  // What keeps others waiting may no longer hold: of the next read for one of them, at the end for all.
  if (next_take_ == needs_buffer_.size()) {
    may_take_.notify_all();
  } else {
    may_take_.notify_one();
  }
  return task;
}

std::optional<ReadTask> ReadQueue::take() {
  std::unique_lock lock(mutex_);
  may_take_.wait(lock, [&] { return can_take(); });
  return take_now();
}

std::optional<ReadTask> ReadQueue::try_take() {
  std::unique_lock lock(mutex_);
  return can_take() ? take_now() : std::nullopt;
}

void ReadQueue::done(const ReadTask& task) {
  std::lock_guard lock(mutex_);
  done_[task.read] = task;
  if (task.read == next_consume_) may_consume_.notify_one();
}

void ReadQueue::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  may_take_.notify_all();
  may_consume_.notify_one();
}

std::optional<ReadTask> ReadQueue::next(const CancelToken* cancel) {
  std::unique_lock lock(mutex_);
  while (true) {
    if (error_) std::rethrow_exception(error_);
    if (cancel != nullptr && cancel->cancelled())
      throw Error(ErrorKind::interrupted, "interrupted while loading", "run again; nothing was written");
    if (next_consume_ == done_.size()) return std::nullopt;
    if (done_[next_consume_]) return std::exchange(done_[next_consume_++], std::nullopt);
    may_consume_.wait_for(lock, kCancelPeriod);
  }
}

void ReadQueue::give_back(std::span<std::byte> buffer) {
  if (buffer.empty()) return;
  std::lock_guard lock(mutex_);
  free_.push_back(buffer);
  may_take_.notify_one();
}

void ReadQueue::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  may_take_.notify_all();
}

}  // namespace sluice::bytes
