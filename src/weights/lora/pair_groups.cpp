#include "weights/lora/pair_groups.h"

#include "aten/low_rank.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace sluice::weights {

PairGroups::PairGroups(const LoraFile& file, std::span<const ParameterGroup* const> order) {
  std::set<std::string_view> placed;
  for (const ParameterGroup* base : order) {
    Group* group = nullptr;
    for (const Parameter& matrix : base->parameters) {
      auto pair = file.pairs.find(matrix.name);
      if (pair == file.pairs.end()) continue;
      if (!group) {
        group = &groups_.emplace_back();
        group->parameters.name = base->name;
        beside_.emplace(base, group);
      }
      add(pair->second, matrix, *group);
      placed.insert(pair->first);
    }
  }
  for (const auto& [parameter, pair] : file.pairs) {
    if (placed.contains(parameter)) continue;
    throw Error(ErrorKind::internal, fmt::format("an adapter for '{}', which no group has", parameter));
  }
}

void PairGroups::add(const LoraPair& pair, const Parameter& matrix, Group& group) {
  if (!matrix.adapters)
    throw Error(ErrorKind::internal,
                fmt::format("an adapter for '{}', which has no place for it", matrix.name));
  Pair& added = group.pairs.emplace_back(Pair{.matrix = &matrix, .factor = static_cast<float>(pair.factor)});
  const ParameterScope scope(group.parameters);
  scope.add(pair.down.name, added.down, pair.down.shape);
  scope.add(pair.up.name, added.up, pair.up.shape, matrix.rows);
}

std::vector<const ParameterGroup*> PairGroups::groups() const {
  std::vector<const ParameterGroup*> groups;
  for (const Group& group : groups_) groups.push_back(&group.parameters);
  return groups;
}

const ParameterGroup* PairGroups::beside(const ParameterGroup& base) const {
  auto found = beside_.find(&base);
  return found == beside_.end() ? nullptr : &found->second->parameters;
}

void PairGroups::lend_to(const ParameterGroup& base) const {
  auto found = beside_.find(&base);
  if (found == beside_.end()) return;
  for (const Pair& pair : found->second->pairs)
    pair.matrix->adapters->push_back({.down = pair.down, .up = pair.up, .factor = pair.factor});
}

}  // namespace sluice::weights
