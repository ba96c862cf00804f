// parity_test DIR [NAME]: compares this program's numbers with those of the reference implementations.
// Walks DIR/*/*/manifest.json (format: tests/fixtures/README.md); NAME keeps the cases whose component/case
// begins so. SLUICE_CPU=PATH: with other instructions than the best;
// --cpu-paths prints those that this processor can run. Exit code: 0 if nothing failed and something passed,
// 1 if not, 2 for a wrong call.
#include "kernels/instructions.h"
#include "parity/suite.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>

namespace {

int run(const std::filesystem::path& folder, std::string_view only) {
  using namespace sluice::parity;
  const Registry registry = every_runner();
  Score score;
  for (const auto& manifest : find_manifests(folder)) {
    const auto name = std::filesystem::relative(manifest.parent_path(), folder).generic_string();
    if (!name.starts_with(only)) continue;
    const Outcome outcome = run_case(manifest, registry);
    count(score, outcome);
    fmt::print("{}", format_outcome(outcome));
    std::fflush(stdout);
  }
  if (score.passed + score.failed + score.skipped == 0) fmt::print("no cases in {}\n", folder.string());
  fmt::print("{}\n", format_score(score));
  return score.good() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string_view(argv[1]) == "--cpu-paths") {
    for (const sluice::CpuPath path : sluice::cpu_paths()) fmt::print("{}\n", sluice::name(path));
    return 0;
  }
  if (argc < 2 || argc > 3 || !std::filesystem::is_directory(argv[1])) {
    fmt::print(stderr,
               "usage: parity_test DIR [COMPONENT[/CASE]]\n       parity_test --cpu-paths\n"
               "  DIR: a folder with <component>/<case>/manifest.json\n");
    return 2;
  }
  try {
    sluice::kernels::follow_cpu_variable();
    return run(argv[1], argc == 3 ? argv[2] : "");
  } catch (const std::exception& problem) {
    fmt::print(stderr, "parity_test: {}\n", problem.what());
    return 1;
  }
}
