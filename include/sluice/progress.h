#pragma once
// How long work tells how far it is, and how it is asked to stop.

#include <atomic>
#include <cstdint>
#include <string_view>

namespace sluice {

// Told from the thread that works; may be called often.
class Progress {
 public:
  virtual ~Progress() = default;
  // `phase`: "text", "denoise", "load", …; done and total count `unit`s ("layers", "steps", "frames", "MiB").
  virtual void at(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) = 0;
};

// Asked between layers, blocks, frames and reads; set it from any thread or from a signal handler.
class CancelToken {
 public:
  void cancel() { cancelled_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return cancelled_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> cancelled_ = false;
};

}  // namespace sluice
