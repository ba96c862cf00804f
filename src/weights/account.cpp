#include "weights/component.h"

#include "weights/dtype.h"
#include "weights/pieces.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

namespace sluice::weights {
namespace {

constexpr std::size_t kNamesListed = 10;

std::vector<std::int64_t> without_ones(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept),
               [](std::int64_t size) { return size != 1; });
  return kept;
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

struct Problems {
  std::vector<std::string> missing, misshapen, unusable, quantized, cut, unexpected;
};

bool has_size(const std::optional<TensorInfo>& tensor, std::int64_t elements) {
  return tensor && tensor->elements() == elements;
}

bool has_shape(const TensorInfo& tensor, const QuantizedTensor* quantized, const Parameter& parameter) {
  if (!quantized || quantized->format == QuantFormat::fp8)
    return without_ones(tensor.shape) == without_ones(parameter.shape);
  std::int64_t values = 1;
  for (std::int64_t extent : parameter.shape) values *= extent;
  return tensor.elements() == (values + 1) / 2 &&
         has_size(quantized->scales, (values + kNf4Block - 1) / kNf4Block);
}

void bind(const ComponentTable& table, const Parameter& parameter, Accounting& accounting,
          Problems& problems) {
  auto found = table.tensors.find(parameter.name);
  if (found == table.tensors.end()) {
    problems.missing.push_back(parameter.name);
    return;
  }
  const TensorInfo& tensor = found->second;
  const QuantizedTensor* quantized = quantized_of(table, parameter);
  if (!has_shape(tensor, quantized, parameter)) {
    problems.misshapen.push_back(
        fmt::format("{} is {}{}, the config needs {}", tensor.name, format_shape(tensor.shape),
                    quantized && quantized->scales ? " (quantized)" : "", format_shape(parameter.shape)));
  } else if (quantized && !parameter.scales && !is_widened_vector(table, parameter)) {
    problems.quantized.push_back(fmt::format("{} ({})", tensor.name, dtype_name(tensor.dtype)));
  } else if (!quantized && !can_compute_with(tensor.dtype)) {
    problems.unusable.push_back(fmt::format("{} ({})", tensor.name, dtype_name(tensor.dtype)));
  }
  accounting.bound++;
  accounting.bound_bytes += tensor.size + (quantized && quantized->scales ? quantized->scales->size : 0);
}

// Rows that groups take by themselves must be all rows, each once.
void check_rows(const ComponentTable& table, std::span<const Parameter* const> takers) {
  if (std::ranges::all_of(takers, [](const Parameter* taker) { return taker->rows.count == 0; })) return;
  const Parameter& parameter = *takers.front();
  std::vector<RowRange> ranges;
  for (const Parameter* taker : takers) ranges.push_back(rows_of(*taker));
  std::ranges::sort(ranges, {}, &RowRange::begin);
  std::int64_t end = 0;
  bool in_turn = true;
  for (const RowRange& range : ranges) {
    in_turn = in_turn && range.begin == end && range.count > 0;
    end = range.begin + range.count;
  }
  const std::int64_t rows = rows_of({parameter.name, parameter.shape, nullptr}).count;
  if (in_turn && end == rows) return;
  throw Error(ErrorKind::internal, fmt::format("{}: groups take rows of '{}' that are not all {}, each once",
                                               table.name, parameter.name, rows));
}

// A scale of nf4 belongs to values in storage order: where blocks cross rows, these cannot be read apart.
void check_blocks(const ComponentTable& table, std::span<const Parameter* const> takers, Problems& problems) {
  const QuantizedTensor* quantized = quantized_of(table, *takers.front());
  if (!quantized || quantized->format != QuantFormat::nf4) return;
  if (std::ranges::all_of(takers, [](const Parameter* taker) { return rows_are_whole_blocks(*taker); }))
    return;
  problems.cut.push_back(tensor_of(table, *takers.front()).name);
}

void throw_if_any(const ComponentTable& table, const Problems& found) {
  const std::string path = table.checkpoint.path().string();
  std::string problems;
  append_list(problems, "missing", found.missing);
  append_list(problems, "of another shape", found.misshapen);
  append_list(problems, "unexpected", found.unexpected);
  if (!problems.empty()) {
    throw Error(ErrorKind::mismatch,
                fmt::format("{}: the {}'s tensors do not match its config{}", path, table.name, problems),
                "check that config and weights come from the same release of the model");
  }
  append_list(problems, "quantized, where only plain values can be computed with", found.quantized);
  append_list(problems, "in nf4 blocks that cross rows which are read apart", found.cut);
  append_list(problems, "of a dtype that cannot be computed with", found.unusable);
  if (!problems.empty()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: {}{}", path, table.name, problems),
                "use a checkpoint that has them in BF16, F16 or F32");
  }
}

}  // namespace

Accounting account(const ComponentTable& table, std::span<const ParameterGroup* const> groups,
                   std::span<const IgnoreRule> ignore) {
  Accounting accounting;
  Problems problems;
  std::map<std::string_view, std::vector<const Parameter*>> used;  // by name: all that take a part of it

  for (const ParameterGroup* group : groups) {
    for (const Parameter& parameter : group->parameters) {
      auto& takers = used[parameter.name];
      if (takers.empty()) bind(table, parameter, accounting, problems);
      takers.push_back(&parameter);
    }
  }
  for (const auto& [name, takers] : used) {
    check_rows(table, takers);
    check_blocks(table, takers, problems);
  }
  for (const auto& [name, tensor] : table.tensors) {
    if (used.contains(name)) continue;
    if (const IgnoreRule* rule = rule_for(name, ignore)) {
      accounting.ignored[rule->reason]++;
    } else {
      problems.unexpected.push_back(tensor.name);
    }
  }

  throw_if_any(table, problems);
  return accounting;
}

}  // namespace sluice::weights
