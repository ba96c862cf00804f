#include "pipeline/phase_runner.h"

#include "base/allocator.h"
#include "base/log.h"
#include "kernels/memory_pool.h"
#include "kernels/scratch.h"
#include "pipeline/allocation.h"
#include "pipeline/phase_meter.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::pipeline {

void PhaseRunner::run(const std::string& phase, const std::function<void()>& work) {
  struct ScratchGuard {  // a failed phase must not keep it either
    ~ScratchGuard() { kernels::release_scratch(); }
  };
  begin(phase);
  PhaseMeter meter(phase, backends_);
  {
    ScratchGuard guard;
    with_memory_errors(phase, work);
  }
  backends_.let_go();
  figures_.phases.push_back(meter.finish());
  give_back_freed_memory();
}

// Weights as planned, and no more memory for tensors than the limit leaves beside them.
void PhaseRunner::begin(const std::string& name) {
  const PhasePlan* phase = run_.plan.find(name);
  if (!phase) return;
  for (const ComponentStaging& staging : phase->staging) backends_.stage(staging);
  kernels::begin_pool_phase(phase->tensors());
  // What is there already (injected values, contexts, latents) is counted with the program.
  const Bytes held = kernels::pool_figures().live;
  if (run_.request.memory_limit) kernels::limit_memory_pool(held + run_.plan.room_for_tensors(*phase));
}

void PhaseRunner::tell(std::string_view phase, std::int64_t done, std::int64_t total,
                       std::string_view unit) const {
  if (progress_) progress_->at(phase, done, total, unit);
  stop_if_cancelled();
}

void PhaseRunner::stop_if_cancelled() const {
  if (cancel_ && cancel_->cancelled())
    throw Error(ErrorKind::interrupted, "interrupted", "run the same command again to start over");
}

void PhaseRunner::resumed(const std::string& from) {
  log_info(fmt::format("resumed {}", from));
  figures_.resumed = from;
}

}  // namespace sluice::pipeline
