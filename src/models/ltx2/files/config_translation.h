#pragma once
// From the configuration in a single file's metadata to the keys of diffusers, so that each component has one
// parser for both layouts.  Every key that would change the network is read or must have the value that is
// implemented; a missing key whose official default differs from the published value is an error, never a
// guess.

#include "models/ltx2/files/component_kind.h"

#include <sluice/checkpoint.h>

#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace sluice::ltx2 {

// Finds a tensor of the component by its diffusers name, nullptr if there is none: some widths stand only in
// shapes.
using TensorLookup = std::function<const TensorInfo*(std::string_view)>;

// `metadata`: the parsed "config" object.  `where` names the file.  Error(bad_input).
nlohmann::json diffusers_config(ComponentKind kind, const nlohmann::json& metadata,
                                const TensorLookup& tensors, const std::string& where);

}  // namespace sluice::ltx2
