#pragma once
// Starting threads, which a system may refuse.

#include <functional>
#include <thread>

namespace sluice {

// std::system_error where the system has no thread left.
std::jthread start_thread(std::function<void()> work);

}  // namespace sluice
