#include "models/ltx2/files/lora_targets.h"

#include "models/ltx2/files/key_map.h"

namespace sluice::ltx2 {

weights::LoraTargets lora_targets(std::span<const weights::ParameterGroup* const> groups) {
  weights::LoraTargets targets;
  for (const weights::ParameterGroup* group : groups) {
    for (const weights::Parameter& parameter : group->parameters) {
      if (!parameter.adapters) continue;
      targets.matrices.emplace(parameter.name, parameter.shape);
      const auto published =
          classify(single_file_name(ComponentKind::transformer, parameter.name, /*blocks=*/{}));
      targets.other_names.emplace(published.value().name, parameter.name);
    }
  }
  return targets;
}

}  // namespace sluice::ltx2
