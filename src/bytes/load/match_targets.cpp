#include "bytes/load/match_targets.h"

#include "base/text.h"
#include "bytes/plan/load_plan_state.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace sluice::bytes {
namespace {

constexpr std::size_t kNamesListed = 8;

using ByName = std::map<std::string_view, std::size_t>;

// What stands against a load, by kind; names in the order of the plan or of what is wanted.
struct Mismatches {
  std::vector<std::string> missing, unexpected, misshapen, mistyped, twice;

  void append(std::string& text, std::string_view what, const std::vector<std::string>& lines) const {
    if (lines.empty()) return;
    text += fmt::format("\n  {} {}: {}", lines.size(), what, list_first(lines, kNamesListed));
  }
  std::string text() const {
    std::string text;
    append(text, "missing", missing);
    append(text, "unexpected", unexpected);
    append(text, "of another shape", misshapen);
    append(text, "of another dtype", mistyped);
    append(text, "given twice", twice);
    return text;
  }
};

ByName index_wanted(std::span<const TargetTensor> wanted, Mismatches& mismatches) {
  ByName by_name;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (!by_name.emplace(wanted[i].name, i).second) mismatches.twice.push_back(in_quotes(wanted[i].name));
  }
  return by_name;
}

// Shapes are compared as they stand: [1, 4] does not spread over [4, 4], nor does it fit [4].
void compare(const TargetTensor& tensor, const TargetTensor& wanted, Mismatches& mismatches) {
  if (tensor.shape != wanted.shape) {
    mismatches.misshapen.push_back(fmt::format("{} is {}, its destination {}", in_quotes(tensor.name),
                                               format_shape(tensor.shape), format_shape(wanted.shape)));
  } else if (tensor.dtype != wanted.dtype) {
    mismatches.mistyped.push_back(fmt::format("{} is {}, its destination {}", in_quotes(tensor.name),
                                              dtype_name(tensor.dtype), dtype_name(wanted.dtype)));
  }
}

}  // namespace

MatchedTargets match_targets(const LoadPlan& plan, std::span<const TargetTensor> wanted,
                             UnexpectedTensors unexpected) {
  Mismatches mismatches;
  ByName left = index_wanted(wanted, mismatches);
  MatchedTargets matched;
  for (const TargetTensor& tensor : plan.targets()) {
    auto found = left.extract(tensor.name);
    matched.push_back(found ? std::optional(found.mapped()) : std::nullopt);
    if (found) {
      compare(tensor, wanted[found.mapped()], mismatches);
    } else if (unexpected == UnexpectedTensors::refuse) {
      mismatches.unexpected.push_back(in_quotes(tensor.name));
    }
  }
  for (const TargetTensor& tensor : wanted) {
    if (left.contains(tensor.name)) mismatches.missing.push_back(in_quotes(tensor.name));
  }
  if (const std::string problems = mismatches.text(); !problems.empty()) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: the checkpoint does not match its destinations{}",
                            plan.checkpoint().path().string(), problems),
                "load it into the model that it was saved from, or declare what must be renamed or cast");
  }
  return matched;
}

LoadPlan without_ignored(const LoadPlan& plan, const MatchedTargets& matched) {
  if (std::ranges::all_of(matched, [](const auto& index) { return index.has_value(); })) return plan;
  auto state = std::make_shared<PlanState>(LoadPlanAccess::state(plan));
  std::erase_if(state->ranges, [&](const WantedRange& range) { return !matched[range.target]; });
  state->read_bytes = 0;
  for (const WantedRange& range : state->ranges) state->read_bytes += range.size;
  return LoadPlanAccess::make(std::move(state));
}

}  // namespace sluice::bytes
