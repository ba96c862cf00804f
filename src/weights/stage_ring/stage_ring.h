#pragma once
// Keeps groups in their places while a pass goes over them: a thread of its own fills what comes next while
// the last one is used, as StageSchedule decides.
//
// acquire() and release() belong to one thread; the engine is called by it and by the ring's own.

#include "weights/stage_ring/fill_engine.h"
#include "weights/stage_ring/stage_schedule.h"

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace sluice::weights {

class StageRing {
 public:
  // `warn`: told, by the thread that acquires, where the system refuses the ring's thread; groups are then
  // filled as they are acquired.
  StageRing(FillEngine& engine, StageShape shape, std::function<void(const std::string&)> warn);
  ~StageRing();  // stops
  StageRing(const StageRing&) = delete;
  StageRing& operator=(const StageRing&) = delete;

  // The place that holds the group's bytes, until release(group) was called as often as this.  Throws what
  // filling it threw, also where that was ahead; the next call tries again.  Error(interrupted) where it is
  // cancelled while it waits: nothing is filled any more then.  Error(does_not_fit) where every slot is
  // leased.
  std::size_t acquire(std::size_t group, const CancelToken* cancel = nullptr);
  void release(std::size_t group) noexcept;

  // Ends what is being filled; nothing is acquired any more.
  void stop() noexcept;

 private:
  void start_reader();
  void read_ahead();
  // Fills what comes next, the lock open meanwhile; false if there is nothing to fill.
  bool fill_next(std::unique_lock<std::mutex>& lock, const CancelToken* cancel);
  std::size_t wait_for_demanded(std::unique_lock<std::mutex>& lock, const CancelToken* cancel);

  FillEngine& engine_;
  const std::function<void(const std::string&)> warn_;
  CancelToken stop_;  // of fills
  std::mutex mutex_;
  std::condition_variable changed_;
  StageSchedule schedule_;   // guarded by mutex_
  bool ended_ = false;       // guarded by mutex_
  bool has_reader_ = false;  // the acquiring thread's, as is the next
  bool asked_for_reader_ = false;
  std::jthread reader_;
};

}  // namespace sluice::weights
