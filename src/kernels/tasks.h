#pragma once
// Tasks of unequal length on LibTorch's threads: whoever is done takes the next one.

#include <ATen/Parallel.h>

#include <atomic>
#include <cstdint>

namespace sluice::kernels {

// work(worker, task) for every task in [0, tasks); a worker does one at a time.
template <typename Work>
void each_task(std::int64_t workers, std::int64_t tasks, const Work& work) {
  std::atomic<std::int64_t> next = 0;
  at::parallel_for(0, workers, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t worker = begin; worker < end; ++worker) {
      for (std::int64_t task = next++; task < tasks; task = next++) work(worker, task);
    }
  });
}

}  // namespace sluice::kernels
