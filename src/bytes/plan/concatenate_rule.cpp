#include "bytes/plan/concatenate_rule.h"

#include "base/text.h"
#include "bytes/plan/glob.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

namespace sluice::bytes {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The tensors that agree in what "*" stands for.
struct Set {
  std::string name;                  // of the result
  std::vector<std::size_t> members;  // by glob: index of the tensor, or kNone
};

class Sets {
 public:
  Sets(const ConcatenateRule& rule, const std::string& described, PlanProblems& problems)
      : rule_(rule), described_(described), problems_(problems) {}

  // True if a glob matches.
  bool add(const std::vector<VirtualTensor>& tensors, std::size_t index) {
    std::size_t matched = 0;
    for (std::size_t glob = 0; glob < rule_.globs.size(); ++glob) {
      auto captures = glob_capture(rule_.globs[glob], tensors[index].name);
      if (!captures) continue;
      if (++matched > 1) {
        tell(tensors[index], "matches more than one of the globs");
        return true;
      }
      std::size_t& member = set_of(*captures).members[glob];
      if (member != kNone) {
        tell(tensors[index], fmt::format("stands in the same place as {}", describe(tensors[member])));
      } else {
        member = index;
      }
    }
    return matched > 0;
  }

  bool is_whole(const Set& set, const std::vector<VirtualTensor>& tensors) {
    auto missing = std::ranges::find(set.members, kNone);
    if (missing == set.members.end()) return true;
    auto present = std::ranges::find_if(set.members, [](std::size_t member) { return member != kNone; });
    const auto glob = static_cast<std::size_t>(missing - set.members.begin());
    tell(tensors[*present], fmt::format("has no partner that matches {}", in_quotes(rule_.globs[glob])));
    return false;
  }

  bool fits(const Set& set, const std::vector<VirtualTensor>& tensors) {
    std::vector<const VirtualTensor*> members;
    for (std::size_t member : set.members) members.push_back(&tensors[member]);
    auto quantized =
        std::ranges::find_if(members, [](auto* member) { return member->scale_name.has_value(); });
    const std::string reason =
        quantized != members.end() ? std::string(kQuantized) : why_not_concatenate(members, rule_.dim);
    if (!reason.empty()) tell(quantized != members.end() ? **quantized : *members.front(), reason);
    return reason.empty();
  }

  std::vector<Set>& all() { return sets_; }

 private:
  Set& set_of(const Captures& captures) {
    std::string key;
    for (std::string_view capture : captures) key += fmt::format("{}:{}", capture.size(), capture);
    auto [found, is_new] = by_key_.try_emplace(std::move(key), sets_.size());
    if (is_new) {
      sets_.push_back(
          {fill_stars(rule_.name, captures), std::vector<std::size_t>(rule_.globs.size(), kNone)});
    }
    return sets_[found->second];
  }

  void tell(const VirtualTensor& tensor, const std::string& reason) {
    problems_.misfit(fmt::format("{}: {} {}", described_, describe(tensor), reason));
  }

  const ConcatenateRule& rule_;
  const std::string& described_;
  PlanProblems& problems_;
  std::vector<Set> sets_;
  std::unordered_map<std::string, std::size_t> by_key_;
};

}  // namespace

std::size_t apply_concatenate(const ConcatenateRule& rule, const std::string& described,
                              std::vector<VirtualTensor>& tensors, PlanProblems& problems) {
  Sets sets(rule, described, problems);
  std::size_t matched = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) matched += sets.add(tensors, i) ? 1 : 0;
  std::vector<bool> used(tensors.size(), false);
  std::vector<VirtualTensor> result;
  for (Set& set : sets.all()) {
    if (!sets.is_whole(set, tensors) || !sets.fits(set, tensors)) continue;
    std::vector<VirtualTensor> members;
    for (std::size_t member : set.members) {
      members.push_back(std::move(tensors[member]));
      used[member] = true;
    }
    result.push_back(concatenate(std::move(members), rule.dim, std::move(set.name)));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!used[i]) result.push_back(std::move(tensors[i]));
  }
  tensors = std::move(result);
  return matched;
}

}  // namespace sluice::bytes
