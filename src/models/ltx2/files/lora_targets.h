#pragma once
// The transformer's matrices as an adapter file may name them.

#include "weights/lora/lora_file.h"
#include "weights/parameters.h"

#include <span>

namespace sluice::ltx2 {

// `groups`: the transformer's, whose names are diffusers'; of their parameters those that can have adapters.
weights::LoraTargets lora_targets(std::span<const weights::ParameterGroup* const> groups);

}  // namespace sluice::ltx2
