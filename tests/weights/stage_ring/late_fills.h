#pragma once
// An engine that is as late as the contract of FillEngine lets it be: it fills on a thread of its own, out of
// step with the caller, and spoils a place as soon as it is released and again before it is filled.  Whoever
// looks at a place without having waited, or keeps looking after it was released, finds wrong bytes.

#include "weights/stage_ring/fill_engine.h"

#include <sluice/error.h>

#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace sluice::weights {

enum class FillPace {
  when_waited_for,  // nothing is filled before somebody waits, and then no more than was waited for
  at_random,        // after a delay that changes
};

class LateFills : public FillEngine {
 public:
  LateFills(std::size_t places, std::size_t size, FillPace pace, unsigned seed)
      : memory_(places, std::vector<std::uint8_t>(size, 0xee)),
        pace_(pace),
        random_(seed),
        marks_(places, 0),
        failed_(places, false),
        thread_([this] { work(); }) {}

  ~LateFills() override {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

  void fill(std::size_t group, std::size_t place, const CancelToken* cancel) override {
    const std::lock_guard lock(mutex_);
    if (cancel->cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
    if (fail_at_begin.erase(group) > 0)
      throw Error(ErrorKind::io, "cannot read group " + std::to_string(group));
    begun.push_back(group);
    queue_.push_back({group, place});
    marks_.at(place) = begun.size();
    changed_.notify_all();
  }

  void wait(std::size_t place) override {
    std::unique_lock lock(mutex_);
    const std::size_t mark = marks_.at(place);
    wanted_ = std::max(wanted_, mark);
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= mark; });
    if (failed_.at(place)) throw Error(ErrorKind::io, "cannot copy to place " + std::to_string(place));
  }

  void release(std::size_t place) noexcept override { spoil(place); }

  // Every byte that the place should hold for the group.
  static std::uint8_t byte_of(std::size_t group) { return static_cast<std::uint8_t>(group + 1); }
  bool holds(std::size_t place, std::size_t group) const {
    for (std::uint8_t byte : memory_.at(place)) {
      if (byte != byte_of(group)) return false;
    }
    return true;
  }

  // To be set before they are used by the ring.
  std::set<std::size_t> fail_at_begin;  // groups whose next fill cannot begin
  std::set<std::size_t> fail_later;     // groups whose next fill does not come to its end
  std::vector<std::size_t> begun;       // groups, of all fills, in order; guarded by the mutex

  std::vector<std::size_t> fills() {
    const std::lock_guard lock(mutex_);
    return begun;
  }

 private:
  struct Fill {
    std::size_t group, place;
  };

  void spoil(std::size_t place) noexcept {
    std::memset(memory_.at(place).data(), 0xee, memory_.at(place).size());
  }

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] {
        return ended_ || (!queue_.empty() && (pace_ == FillPace::at_random || done_ < wanted_));
      });
      if (ended_) return;
      const Fill fill = queue_.front();
      queue_.pop_front();
      const bool fails = fail_later.erase(fill.group) > 0;
      lock.unlock();
      spoil(fill.place);
      if (pace_ == FillPace::at_random)
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
      if (!fails)
        std::memset(memory_.at(fill.place).data(), byte_of(fill.group), memory_.at(fill.place).size());
      lock.lock();
      failed_.at(fill.place) = fails;
      ++done_;
      changed_.notify_all();
    }
  }

  std::vector<std::vector<std::uint8_t>> memory_;  // by place
  const FillPace pace_;
  std::mt19937 random_;  // the thread's
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Fill> queue_;          // guarded by mutex_, as all below
  std::vector<std::size_t> marks_;  // by place: how many fills must be done
  std::vector<bool> failed_;        // by place
  std::size_t done_ = 0, wanted_ = 0;
  bool ended_ = false;
  std::jthread thread_;
};

}  // namespace sluice::weights
