#include "base/thread.h"

#include "base/syscalls.h"

#include <utility>

namespace sluice {

std::jthread start_thread(std::function<void()> work) {
  syscalls().before_thread();
  return std::jthread(std::move(work));
}

}  // namespace sluice
