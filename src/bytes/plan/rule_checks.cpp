#include "base/text.h"
#include "bytes/plan/glob.h"
#include "bytes/plan/part_copy.h"
#include "bytes/plan/transform_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::bytes {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(in_quotes(name));
  return list_first(quoted, 4);
}

struct Describe {
  std::string operator()(const RenameRule& rule) const { return "rename " + in_quotes(rule.glob); }
  std::string operator()(const DropRule& rule) const { return "drop " + in_quotes(rule.glob); }
  std::string operator()(const CastRule& rule) const { return "cast " + in_quotes(rule.glob); }
  std::string operator()(const SliceRule& rule) const { return "slice " + in_quotes(rule.glob); }
  std::string operator()(const SplitRule& rule) const { return "split " + in_quotes(rule.glob); }
  std::string operator()(const ConcatenateRule& rule) const {
    return "concatenate " + quoted_list(rule.globs);
  }
  std::string operator()(const TransposeRule& rule) const { return "transpose " + in_quotes(rule.glob); }
  std::string operator()(const QuantizeRule& rule) const { return "quantize " + in_quotes(rule.glob); }
};

std::string why_not_name(const std::string& name, const std::string& glob) {
  if (name.empty()) return "the new name is empty";
  if (count_stars(name) <= count_stars(glob)) return {};
  return fmt::format("the new name {} has more '*' than the glob", in_quotes(name));
}

bool is_cast_target(Dtype dtype) {
  return can_cast(Dtype::F32, dtype) || can_cast(Dtype::BOOL, dtype);
}

struct WhyImpossible {
  std::string operator()(const RenameRule& rule) const { return why_not_name(rule.name, rule.glob); }
  std::string operator()(const DropRule&) const { return {}; }
  std::string operator()(const TransposeRule&) const { return {}; }

  std::string operator()(const CastRule& rule) const {
    if (rule.from && !can_cast(*rule.from, rule.to))
      return fmt::format("{} cannot be cast to {}", dtype_name(*rule.from), dtype_name(rule.to));
    if (!is_cast_target(rule.to)) return fmt::format("nothing can be cast to {}", dtype_name(rule.to));
    return {};
  }

  std::string operator()(const SliceRule& rule) const {
    if (0 <= rule.begin && rule.begin <= rule.end) return {};
    return fmt::format("{} to {} is no range", rule.begin, rule.end);
  }

  std::string operator()(const SplitRule& rule) const {
    if (rule.names.empty()) return "it names no parts";
    if (!rule.extents.empty() && rule.extents.size() != rule.names.size())
      return fmt::format("{} names for {} extents", rule.names.size(), rule.extents.size());
    if (std::ranges::any_of(rule.extents, [](std::int64_t extent) { return extent < 0; }))
      return "an extent is negative";
    for (const std::string& name : rule.names) {
      if (std::string reason = why_not_name(name, rule.glob); !reason.empty()) return reason;
    }
    return {};
  }

  std::string operator()(const ConcatenateRule& rule) const {
    if (rule.globs.empty()) return "it has no globs";
    const std::size_t stars = count_stars(rule.globs.front());
    auto as_many = [&](const std::string& glob) { return count_stars(glob) == stars; };
    if (!std::ranges::all_of(rule.globs, as_many)) return "the globs differ in the number of their '*'";
    return why_not_name(rule.name, rule.globs.front());
  }

  std::string operator()(const QuantizeRule& rule) const {
    if (rule.to == Dtype::F8_E4M3) return {};
    return fmt::format("to {}: only F8_E4M3 can be made", dtype_name(rule.to));
  }
};

}  // namespace

std::string describe(const TransformRule& rule) {
  return std::visit(Describe{}, rule);
}

std::string why_impossible(const TransformRule& rule) {
  return std::visit(WhyImpossible{}, rule);
}

}  // namespace sluice::bytes
