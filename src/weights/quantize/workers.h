#pragma once
// Threads that share the parts of one piece of work with the thread that asks for it.  One thread asks at a
// time; nothing else in this folder computes on threads of its own.

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice::weights {

class Workers {
 public:
  // `threads` with the asking one; fewer where the system refuses them.
  explicit Workers(unsigned threads);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  std::size_t threads() const { return threads_.size() + 1; }

  // Calls part(0) … part(count - 1), each once, and returns when all have ended.  Throws the first exception
  // of any.
  void run(std::size_t count, const std::function<void(std::size_t)>& part);

 private:
  void work();
  void take_parts(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(std::size_t)>* part_ = nullptr;  // guarded by mutex_
  std::size_t next_ = 0, count_ = 0, running_ = 0;          // guarded by mutex_
  std::exception_ptr error_;                                // guarded by mutex_
  bool stopped_ = false;                                    // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace sluice::weights
