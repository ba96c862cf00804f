#pragma once
// What every phase of a run goes through: its weights staged and its memory limited as planned, measured, its
// failures named, its progress told, and a cancelled run stopped.  One thread.

#include "pipeline/backends.h"
#include "pipeline/prepared_run.h"
#include "pipeline/run_report.h"

#include <sluice/progress.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace sluice::pipeline {

class PhaseRunner {
 public:
  // All outlive it.
  PhaseRunner(const PreparedRun& run, Backends& backends, RunFigures& figures, Progress* progress,
              const CancelToken* cancel)
      : run_(run), backends_(backends), figures_(figures), progress_(progress), cancel_(cancel) {}

  // A phase of the plan, under its name.
  void run(const std::string& phase, const std::function<void()>& work);

  // May throw Error(interrupted).
  void tell(std::string_view phase, std::int64_t done, std::int64_t total, std::string_view unit) const;
  void stop_if_cancelled() const;

  void resumed(const std::string& from);  // "after 5 of 8 steps"

  const PreparedRun& prepared() const { return run_; }
  Backends& backends() const { return backends_; }
  RunFigures& figures() const { return figures_; }

 private:
  void begin(const std::string& phase);

  const PreparedRun& run_;
  Backends& backends_;
  RunFigures& figures_;
  Progress* progress_;
  const CancelToken* cancel_;
};

}  // namespace sluice::pipeline
