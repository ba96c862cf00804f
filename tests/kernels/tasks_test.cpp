#include "kernels/tasks.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace sluice::kernels {
namespace {

class Threads {  // for a scope
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }

 private:
  int before_;
};

TEST(Tasks, run_side_by_side_on_as_many_threads_as_there_are_workers) {
  const Threads threads(2);
  std::atomic<int> arrived = 0;
  std::atomic<bool> met = false;

  // Each task waits for the other one: on a single thread they never meet.
  each_task(2, 2, [&](std::int64_t, std::int64_t) {
    ++arrived;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (arrived == 2) met = true;
  });

  EXPECT_TRUE(met);
}

TEST(Tasks, are_each_done_once) {
  const Threads threads(3);
  std::vector<std::atomic<int>> done(1000);

  each_task(3, 1000, [&](std::int64_t, std::int64_t task) { ++done[static_cast<std::size_t>(task)]; });

  for (const auto& count : done) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace sluice::kernels
