#include "weights/stage_ring/stage_ring.h"

#include "base/thread.h"

#include <sluice/error.h>

#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

namespace sluice::weights {
namespace {

// How long a cancelled run may go on waiting: nobody wakes it for that.
constexpr auto kCancelPeriod = std::chrono::milliseconds(50);

}  // namespace

StageRing::StageRing(FillEngine& engine, StageShape shape, std::function<void(const std::string&)> warn)
    : engine_(engine), warn_(std::move(warn)), schedule_(std::move(shape)) {}

StageRing::~StageRing() {
  stop();
}

void StageRing::stop() noexcept {
  stop_.cancel();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  if (reader_.joinable()) reader_.join();
}

void StageRing::start_reader() {
  if (std::exchange(asked_for_reader_, true)) return;
  try {
    reader_ = start_thread([this] { read_ahead(); });
    has_reader_ = true;
  } catch (const std::system_error&) {
    warn_("the system refused a thread that reads weights ahead: they are read when they are needed");
  }
}

std::size_t StageRing::acquire(std::size_t group, const CancelToken* cancel) {
  {
    const std::lock_guard lock(mutex_);
    schedule_.demand(group);
  }
  changed_.notify_all();
  start_reader();  // that has something to go on from
  std::unique_lock lock(mutex_);
  const std::size_t place = wait_for_demanded(lock, cancel);
  schedule_.lease();
  lock.unlock();
  changed_.notify_all();
  try {
    engine_.wait(place);
  } catch (...) {
    lock.lock();
    schedule_.unlease_lost(group);
    throw;
  }
  return place;
}

void StageRing::release(std::size_t group) noexcept {
  std::unique_lock lock(mutex_);
  if (schedule_.is_last_lease(group) && schedule_.gives_slot_back(group)) {
    const std::size_t place = schedule_.place_of(group);
    lock.unlock();
    engine_.release(place);  // before anybody may fill it
    lock.lock();
  }
  schedule_.release(group);
  changed_.notify_all();
}

std::size_t StageRing::wait_for_demanded(std::unique_lock<std::mutex>& lock, const CancelToken* cancel) {
  for (bool waited = false;; waited = true) {
    if (waited && cancel != nullptr && cancel->cancelled()) {
      stop_.cancel();
      schedule_.give_up_demand();
      throw Error(ErrorKind::interrupted, "interrupted while reading weights", "run again");
    }
    if (const auto place = schedule_.place_of_demanded()) return *place;
    if (std::exception_ptr error = schedule_.take_error_of_demanded()) {
      schedule_.give_up_demand();
      std::rethrow_exception(error);
    }
    if (schedule_.demanded_is_stuck()) {
      schedule_.give_up_demand();
      throw Error(ErrorKind::does_not_fit, "more groups of weights are in use at once than there are slots",
                  "let more blocks stay in memory, or give the weights more of it");
    }
    if (has_reader_) {
      changed_.wait_for(lock, kCancelPeriod);
    } else {
      fill_next(lock, cancel != nullptr ? cancel : &stop_);
    }
  }
}

void StageRing::read_ahead() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (!fill_next(lock, &stop_)) changed_.wait(lock);
  }
}

bool StageRing::fill_next(std::unique_lock<std::mutex>& lock, const CancelToken* cancel) {
  const std::optional<StageSchedule::Fill> fill = schedule_.next();
  if (!fill) return false;
  lock.unlock();
  std::exception_ptr error;
  try {
    engine_.fill(fill->group, fill->place, cancel);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error) {
    schedule_.failed(*fill, std::move(error));
  } else {
    schedule_.filled(*fill);
  }
  changed_.notify_all();
  return true;
}

}  // namespace sluice::weights
