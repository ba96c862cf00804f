#include "cli/flags.h"

namespace sluice::cli {

void add_common(CLI::App& command, CommonFlags& flags) {
  command.add_flag("--json", flags.json, "results and errors as one JSON object on stdout")->group("Output");
  command.add_flag("--quiet,-q", flags.quiet, "no progress")->group("Output");
  command.add_flag("--verbose,-v", flags.verbose, "say what `auto` chose and why")->group("Output");
}

}  // namespace sluice::cli
