#pragma once
// What a run tells of itself when it is over: the request, choices, warnings, and for each phase what it took
// beside what was planned.

#include "media/sound_fit.h"
#include "pipeline/backends.h"
#include "pipeline/phase_meter.h"
#include "pipeline/prepared_run.h"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct StepFigures {
  double seconds = 0;
  Bytes anonymous = 0;  // what the process holds behind the step
};

struct RunFigures {
  std::vector<PhaseFigures> phases;
  std::vector<StepFigures> steps;  // of those that were computed
  std::optional<media::SoundFit> sound_fit;
  std::string resumed;  // "after 5 of 8 steps"; empty: from the start
};

nlohmann::json run_report(const PreparedRun& run, const Backends& backends, const RunFigures& figures);

}  // namespace sluice::pipeline
