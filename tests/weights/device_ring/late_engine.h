#pragma once
// A device that is as slow as the contract of CopyEngine lets it be: it copies on a thread of its own, out of
// step with the caller, and spoils a slot as soon as all of it has been copied.  Whoever writes to a slot
// without having waited for it finds wrong bytes on the device.

#include "weights/device_ring/copy_engine.h"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

namespace sluice::weights {

enum class Pace {
  when_waited_for,  // nothing is copied before somebody waits, and then no more than was waited for
  at_random,        // some copies lag behind, how many changes
};

class LateEngine : public CopyEngine {
 public:
  LateEngine(std::vector<std::span<std::byte>> slots, std::vector<std::vector<std::byte>>& destinations,
             Pace pace, unsigned seed)
      : slots_(std::move(slots)),
        destinations_(destinations),
        pace_(pace),
        random_(seed),
        marks_(slots_.size(), 0),
        thread_([this] { work(); }) {}

  ~LateEngine() override {
    drain();
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

  void copy(std::span<const std::byte> from, std::size_t to, Bytes offset) override {
    begin([this, from, to, offset] {
      std::memcpy(destinations_.at(to).data() + offset, from.data(), from.size());
    });
  }
  void record(std::size_t slot) override {
    marks_.at(slot) = begin([this, slot] { std::memset(slots_[slot].data(), 0xee, slots_[slot].size()); });
  }
  void wait(std::size_t slot) override { wait_until(marks_.at(slot)); }
  void drain() noexcept override { wait_until(begun_); }

 private:
  using Work = std::function<void()>;

  std::size_t begin(Work work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
    return ++begun_;
  }

  void wait_until(std::size_t count) {
    std::unique_lock lock(mutex_);
    wanted_ = std::max(wanted_, count);
    changed_.notify_all();
    changed_.wait(lock, [&] { return ended_count_ >= count; });
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (std::size_t lag = 0;;) {
      changed_.wait(lock, [&] {
        return ended_ || ended_count_ < wanted_ || (pace_ == Pace::at_random && queue_.size() > lag);
      });
      if (queue_.empty()) return;
      Work work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      lag = random_() % 6;
      lock.lock();
      ++ended_count_;
      changed_.notify_all();
    }
  }

  const std::vector<std::span<std::byte>> slots_;
  std::vector<std::vector<std::byte>>& destinations_;
  const Pace pace_;
  std::mt19937 random_;             // the thread's
  std::vector<std::size_t> marks_;  // the caller's
  std::size_t begun_ = 0;           // the caller's, written under the mutex
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;       // guarded by mutex_
  std::size_t ended_count_ = 0;  // guarded by mutex_
  std::size_t wanted_ = 0;       // guarded by mutex_
  bool ended_ = false;           // guarded by mutex_
  std::jthread thread_;
};

// Slots of one piece of memory.
class Slots {
 public:
  Slots(std::size_t count, std::size_t size) : memory_(count * size), size_(size) {}
  std::vector<std::span<std::byte>> spans() {
    std::vector<std::span<std::byte>> spans;
    for (std::size_t at = 0; at < memory_.size(); at += size_)
      spans.push_back(std::span(memory_).subspan(at, size_));
    return spans;
  }

 private:
  std::vector<std::byte> memory_;
  std::size_t size_;
};

}  // namespace sluice::weights
