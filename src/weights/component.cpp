#include "weights/component.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace sluice::weights {
namespace {

constexpr std::size_t kNamesListed = 10;

std::vector<std::int64_t> without_ones(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
               [](std::int64_t size) { return size != 1; });
  return kept;
}

bool can_compute_with(Dtype dtype) {
  return dtype == Dtype::BF16 || dtype == Dtype::F16 || dtype == Dtype::F32;
}

void append_list(std::string& text, std::string_view what, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  std::size_t shown = std::min(lines.size(), kNamesListed);
  text += fmt::format("\n  {} {}: {}", lines.size(), what,
                      fmt::join(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (shown < lines.size()) text += fmt::format(" and {} more", lines.size() - shown);
}

const IgnoreRule* rule_for(std::string_view name, std::span<const IgnoreRule> rules) {
  auto rule = std::find_if(rules.begin(), rules.end(),
                           [&](const IgnoreRule& r) { return name.starts_with(r.prefix); });
  return rule == rules.end() ? nullptr : &*rule;
}

}  // namespace

ComponentTable whole_checkpoint(std::string name, const Checkpoint& checkpoint) {
  ComponentTable table{std::move(name), checkpoint, {}};
  for (const TensorInfo& tensor : checkpoint.tensors()) table.tensors.emplace(tensor.name, tensor);
  return table;
}

Accounting account(const ComponentTable& table, std::span<const ParameterGroup* const> groups,
                   std::span<const IgnoreRule> ignore) {
  Accounting accounting;
  std::vector<std::string> missing, misshapen, unusable, unexpected;
  std::set<std::string_view> used;

  for (const ParameterGroup* group : groups) {
    for (const Parameter& parameter : group->parameters) {
      auto found = table.tensors.find(parameter.name);
      if (found == table.tensors.end()) {
        missing.push_back(parameter.name);
        continue;
      }
      const TensorInfo& tensor = found->second;
      used.insert(parameter.name);
      if (without_ones(tensor.shape) != without_ones(parameter.shape)) {
        misshapen.push_back(fmt::format("{} is {}, the config needs {}", tensor.name,
                                        format_shape(tensor.shape), format_shape(parameter.shape)));
      } else if (!can_compute_with(tensor.dtype)) {
        unusable.push_back(fmt::format("{} ({})", tensor.name, dtype_name(tensor.dtype)));
      }
      accounting.bound++;
      accounting.bound_bytes += tensor.size;
    }
  }
  for (const auto& [name, tensor] : table.tensors) {
    if (used.contains(name)) continue;
    if (const IgnoreRule* rule = rule_for(name, ignore)) {
      accounting.ignored[rule->reason]++;
    } else {
      unexpected.push_back(tensor.name);
    }
  }

  std::string problems;
  append_list(problems, "missing", missing);
  append_list(problems, "of another shape", misshapen);
  append_list(problems, "unexpected", unexpected);
  if (!problems.empty()) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: the {}'s tensors do not match its config{}",
                            table.checkpoint.path().string(), table.name, problems),
                "check that config and weights come from the same release of the model");
  }
  append_list(problems, "of a dtype that cannot be computed with yet", unusable);
  if (!problems.empty()) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: {}{}", table.checkpoint.path().string(), table.name, problems),
                "use the checkpoint in BF16, F16 or F32");
  }
  return accounting;
}

}  // namespace sluice::weights
