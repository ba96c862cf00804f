#pragma once
// The commands that compute.  Each adds its flags to a CLI::App and gives back what to do once they are
// parsed.

#include "cli/program.h"

#include <sluice/sluice.h>

namespace sluice::compute {

cli::Action add_generate(CLI::App& app);
cli::Action add_encode(CLI::App& app);
cli::Action add_plan(CLI::App& app);
cli::Action add_quantize(CLI::App& app);
cli::Action add_recommend(CLI::App& app);
cli::Action add_inspect_video(CLI::App& app);

}  // namespace sluice::compute
