#include "bytes/plan/load_plan_problems.h"

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::bytes {
namespace {

constexpr std::size_t kProblemsShown = 8;

}  // namespace

void PlanProblems::throw_if_any(const std::filesystem::path& checkpoint) const {
  if (empty()) return;
  std::vector<std::string> all = impossible_;
  all.insert(all.end(), misfits_.begin(), misfits_.end());
  const std::string message =
      all.size() == 1 ? fmt::format("{}: {}", checkpoint.string(), all.front())
                      : fmt::format("{}: {} problems with what is to be loaded\n  {}", checkpoint.string(),
                                    all.size(), list_first(all, kProblemsShown, "\n  "));
  if (!impossible_.empty()) throw Error(ErrorKind::usage, message, "correct the rules that are named");
  throw Error(ErrorKind::mismatch, message,
              "compare the rules with the names and shapes that `sluice inspect` lists for this file");
}

}  // namespace sluice::bytes
