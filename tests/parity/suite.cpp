#include "parity/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace sluice::parity {
namespace {

namespace fs = std::filesystem;

std::string format_row(const std::string& name, const Row& row) {
  std::string line = fmt::format("{:<38} {:<22} ", name, row.output);
  if (row.is_tensor) {
    line += fmt::format("abs {:<9.3g} rel {:<9.3g} tolerance {:.2g} + {:.2g}|x|", row.max_abs, row.max_rel,
                        row.tolerance.atol, row.tolerance.rtol);
  }
  line = fmt::format("{:<110} {}", line, row.pass ? "pass" : "FAIL");
  return row.remark.empty() ? line + "\n" : fmt::format("{}\n    {}\n", line, row.remark);
}

Outcome run_runner(const Runner& runner, Manifest manifest, std::string name) {
  const Case parity_case(std::move(manifest));
  Outcome outcome{.name = std::move(name), .rows = judge(parity_case, runner(parity_case))};
  const bool passed =
      std::all_of(outcome.rows.begin(), outcome.rows.end(), [](const Row& row) { return row.pass; });
  outcome.verdict = passed ? Verdict::passed : Verdict::failed;
  return outcome;
}

}  // namespace

std::vector<fs::path> find_manifests(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& component : fs::directory_iterator(folder)) {
    if (!component.is_directory()) continue;
    for (const auto& parity_case : fs::directory_iterator(component)) {
      fs::path manifest = parity_case.path() / "manifest.json";
      if (fs::exists(manifest)) found.push_back(std::move(manifest));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

Outcome run_case(const fs::path& path, const Registry& registry) {
  const fs::path folder = path.parent_path();
  const std::string name = (folder.parent_path().filename() / folder.filename()).generic_string();
  try {
    Manifest manifest = read_manifest(path);
    const Runner* runner = registry.find(manifest);
    if (!runner) return {.name = name, .verdict = Verdict::skipped, .reason = "not covered"};
    return run_runner(*runner, std::move(manifest), name);
  } catch (const std::exception& problem) {
    return {.name = name, .verdict = Verdict::failed, .reason = problem.what()};
  }
}

void count(Score& score, const Outcome& outcome) {
  switch (outcome.verdict) {
    case Verdict::passed:
      ++score.passed;
      break;
    case Verdict::failed:
      ++score.failed;
      break;
    case Verdict::skipped:
      ++score.skipped;
      break;
  }
}

std::string format_outcome(const Outcome& outcome) {
  if (outcome.verdict == Verdict::skipped)
    return fmt::format("{:<38} skipped: {}\n", outcome.name, outcome.reason);
  if (outcome.rows.empty()) return fmt::format("{:<38} FAIL: {}\n", outcome.name, outcome.reason);
  std::string lines;
  for (const Row& row : outcome.rows) lines += format_row(outcome.name, row);
  return lines;
}

std::string format_score(const Score& score) {
  return fmt::format("{} passed, {} failed, {} skipped", score.passed, score.failed, score.skipped);
}

}  // namespace sluice::parity
