#include "bytes/plan/filters.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string_view>

namespace sluice {
namespace {

bool matches_any(std::span<const std::string> globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return glob_matches(glob, name); });
}

// Whole prefixes: "model.revision.weight" is no vision tower.
bool is_vision(std::string_view name) {
  return name.starts_with("model.visual.") || name.starts_with("model.vision") || name.starts_with("visual.");
}

// Layers that predict further tokens.
bool is_mtp(std::string_view name) {
  return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos;
}

}  // namespace

bool wanted_by(const TensorFilter& filter, std::string_view name) {
  if (!filter.include.empty() && !matches_any(filter.include, name)) return false;
  if (matches_any(filter.exclude, name)) return false;
  if (filter.skip_vision && is_vision(name)) return false;
  if (filter.skip_mtp && is_mtp(name)) return false;
  return !(filter.skip_input_scales && name.ends_with(".input_scale"));
}

namespace bytes {
namespace {

struct ExpertName {
  std::string_view prefix;  // what comes before "experts."
  std::uint64_t number = 0;
};

// "experts.N." as whole parts of the name: shared_experts.0. belongs to every rank.
std::optional<ExpertName> find_expert(std::string_view name) {
  constexpr std::string_view kExperts = "experts.";
  for (std::size_t at = name.find(kExperts); at != std::string_view::npos; at = name.find(kExperts, at + 1)) {
    if (at > 0 && name[at - 1] != '.') continue;
    const char* end = name.data() + name.size();
    ExpertName expert{name.substr(0, at), 0};
    auto [stop, error] = std::from_chars(name.data() + at + kExperts.size(), end, expert.number);
    if (error == std::errc() && stop != end && *stop == '.') return expert;
  }
  return std::nullopt;
}

using Experts = std::map<std::string_view, std::vector<std::uint64_t>>;  // by prefix: numbers, sorted, unique

Experts count_experts(std::span<const TensorInfo> tensors) {
  Experts experts;
  for (const TensorInfo& tensor : tensors) {
    if (auto expert = find_expert(tensor.name)) experts[expert->prefix].push_back(expert->number);
  }
  for (auto& [prefix, numbers] : experts) {
    std::ranges::sort(numbers);
    auto rest = std::ranges::unique(numbers);
    numbers.erase(rest.begin(), rest.end());
  }
  return experts;
}

// [begin, end) of `count` things in a row that belong to the rank.
struct Share {
  std::size_t begin, end;
};
Share share_of(std::size_t count, const Rank& rank) {
  const std::size_t each = count / rank.world, more = count % rank.world;
  auto begin = [&](std::size_t index) { return index * each + std::min(index, more); };
  return {begin(rank.index), begin(rank.index + std::size_t{1})};
}

bool owns(const std::vector<std::uint64_t>& numbers, std::uint64_t number, const Rank& rank) {
  const Share share = share_of(numbers.size(), rank);
  const auto place = static_cast<std::size_t>(std::ranges::lower_bound(numbers, number) - numbers.begin());
  return share.begin <= place && place < share.end;
}

}  // namespace

std::vector<const TensorInfo*> filter_tensors(std::span<const TensorInfo> tensors, const TensorFilter& filter,
                                              PlanProblems& problems) {
  bool all_match = true;
  for (const std::string& glob : filter.include) {
    auto matches = [&](const TensorInfo& tensor) { return glob_matches(glob, tensor.name); };
    if (std::ranges::any_of(tensors, matches)) continue;
    all_match = false;
    problems.misfit(fmt::format("include {} matches no tensor", in_quotes(glob)));
  }
  std::vector<const TensorInfo*> kept;
  kept.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (wanted_by(filter, tensor.name)) kept.push_back(&tensor);
  }
  if (kept.empty() && !tensors.empty() && all_match)
    problems.misfit(fmt::format("the filter leaves none of {} tensors", tensors.size()));
  return kept;
}

bool drop_foreign_experts(std::vector<const TensorInfo*>& kept, std::span<const TensorInfo> all,
                          const Rank& rank) {
  const Experts experts = count_experts(all);
  std::erase_if(kept, [&](const TensorInfo* tensor) {
    auto expert = find_expert(tensor->name);
    return expert && !owns(experts.at(expert->prefix), expert->number, rank);
  });
  return std::ranges::any_of(experts, [&](const auto& entry) {
    const Share share = share_of(entry.second.size(), rank);
    return share.begin == share.end;
  });
}

}  // namespace bytes
}  // namespace sluice
