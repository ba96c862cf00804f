#pragma once
// Fills the places of a stage with groups by loads straight into their memory.

#include "weights/group_load.h"
#include "weights/stage_ring/fill_engine.h"

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::weights {

class LoadFills final : public FillEngine {
 public:
  // `loads`, by group, and `places`, which hold them, outlive it.
  LoadFills(std::span<const GroupLoad> loads, std::span<const std::span<std::byte>> places,
            ReadOptions options);

  // Where the way of reading that was asked for fails, once more through the page cache.
  void fill(std::size_t group, std::size_t place, const CancelToken* cancel) override;
  void wait(std::size_t) override {}
  void release(std::size_t) noexcept override {}

  // What there is to tell since the last call; any thread.
  struct News {
    std::vector<LoadReport> reports;
    std::vector<std::string> warnings;
  };
  News take_news();
  Bytes bytes_read() const;  // by loads that came to their end

 private:
  LoadReport load_into_place(std::size_t group, std::size_t place, const CancelToken* cancel);

  const std::span<const GroupLoad> loads_;
  const std::span<const std::span<std::byte>> places_;
  std::vector<Bytes> touched_;  // by place: how far it has been written to; the filling thread's, as options_
  ReadOptions options_;
  mutable std::mutex mutex_;
  News news_;             // guarded by mutex_
  Bytes bytes_read_ = 0;  // guarded by mutex_
};

}  // namespace sluice::weights
