#include "kernels/work_timer.h"

#include <cstddef>

namespace sluice::kernels {
namespace {

struct State {
  bool on = false;
  bool inside = false;  // of a kernel that is counted
  WorkSeconds seconds{};
};

State& state() {
  thread_local State own;
  return own;
}

}  // namespace

void time_work(bool on) {
  state() = {.on = on};
}

const WorkSeconds& work_seconds() {
  return state().seconds;
}

WorkTimer::WorkTimer(Work work) : work_(work), counts_(state().on && !state().inside) {
  if (!counts_) return;
  state().inside = true;
  begin_ = std::chrono::steady_clock::now();
}

WorkTimer::~WorkTimer() {
  if (!counts_) return;
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin_;
  state().seconds[static_cast<std::size_t>(work_)] += elapsed.count();
  state().inside = false;
}

}  // namespace sluice::kernels
