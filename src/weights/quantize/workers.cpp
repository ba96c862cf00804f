#include "weights/quantize/workers.h"

#include "base/thread.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace sluice::weights {

Workers::Workers(unsigned threads) {
  try {
    while (threads_.size() + 1 < threads) threads_.push_back(start_thread([this] { work(); }));
  } catch (const std::system_error&) {
    // The asking thread does what is left.
  }
}

Workers::~Workers() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  begin_.notify_all();
}

void Workers::run(std::size_t count, const std::function<void(std::size_t)>& part) {
  std::unique_lock lock(mutex_);
  part_ = &part;
  next_ = 0;
  count_ = count;
  error_ = nullptr;
  if (count > 1) begin_.notify_all();
  take_parts(lock);
  end_.wait(lock, [this] { return running_ == 0; });
  part_ = nullptr;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    begin_.wait(lock, [this] { return stopped_ || next_ < count_; });
    if (stopped_) return;
    take_parts(lock);
    if (running_ == 0) end_.notify_all();
  }
}

void Workers::take_parts(std::unique_lock<std::mutex>& lock) {
  while (next_ < count_) {
    const std::size_t number = next_++;
    const auto& part = *part_;
    ++running_;
    lock.unlock();
    std::exception_ptr error;
    try {
      part(number);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    --running_;
    if (error && !error_) error_ = error;
    if (error) next_ = count_;
  }
}

}  // namespace sluice::weights
