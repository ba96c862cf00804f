#pragma once
// Between the tensor names of the published single file and those of diffusers, which the models use.
// Rules match whole path segments: `ups` renames ".ups." and never a part of "upsample".

#include "models/ltx2/files/component_kind.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::ltx2 {

struct ComponentName {
  ComponentKind kind;
  std::string name;  // without the component's prefix, still as in the single file
};

// Which component a name of the single file belongs to; empty for a name under no known prefix.
std::optional<ComponentName> classify(std::string_view single_file_name);

// How the blocks of a video VAE are numbered in the single file follows from the block lists of its config:
// "decoder.up_blocks.3" -> "decoder.up_blocks.1.upsamplers.0".
using BlockNames = std::map<std::string, std::string, std::less<>>;

// `vae`: the metadata's vae object.  Error(bad_input) unless groups of residual blocks and samplers
// alternate.
BlockNames vae_block_names(const nlohmann::json& vae, const std::string& where);

// The name diffusers gives the tensor.  `blocks` matters for the video VAE only.
std::string diffusers_name(const ComponentName& name, const BlockNames& blocks);

// The inverse of both steps: the name in the single file, with its component's prefix.
std::string single_file_name(ComponentKind kind, std::string_view diffusers_name, const BlockNames& blocks);

}  // namespace sluice::ltx2
