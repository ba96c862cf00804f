#pragma once
// A case's weights the way a generation reads them: headers checked against the model's parameters, tensors
// leased from a mapping.

#include "weights/component.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace sluice::parity {

// Every parameter must be in the file and every tensor of the file must be used or ignored by rule.
std::unique_ptr<weights::WeightSource> open_weights(const std::string& component,
                                                    const std::filesystem::path& file,
                                                    const std::vector<const weights::ParameterGroup*>& groups,
                                                    std::span<const weights::IgnoreRule> ignore = {});

}  // namespace sluice::parity
