#include "synth/sizes.h"

#include "nn/json_file.h"
#include "synth/presets.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::synth {
namespace {

Sizes from_json(nlohmann::json json, const std::string& where) {
  Sizes sizes;
  if (auto states = json.find("text_states"); states != json.end()) {
    if (!states->is_number_integer() || states->get<std::int64_t>() < 1) {
      throw Error(ErrorKind::bad_input, fmt::format("{}: 'text_states' is {}", where, states->dump()),
                  "give the number of the text encoder's states, its layers + 1");
    }
    sizes.text_states = states->get<std::int64_t>();
    json.erase(states);
  }
  for (const char* key : {"transformer", "vae", "audio_vae", "vocoder"}) {
    if (auto object = json.find(key); object == json.end() || !object->is_object()) {
      throw Error(ErrorKind::bad_input, fmt::format("{}: no object '{}'", where, key),
                  "give the config of a published file's metadata");
    }
  }
  sizes.config = std::move(json);
  return sizes;
}

}  // namespace

Sizes preset(std::string_view name) {
  if (name == "tiny") return from_json(nlohmann::json::parse(kTinyConfig), "preset tiny");
  if (name == "22b") return from_json(nlohmann::json::parse(kPublishedConfig), "preset 22b");
  throw Error(ErrorKind::usage, fmt::format("unknown preset '{}'", name), "known are tiny and 22b");
}

Sizes read_sizes(const std::filesystem::path& path) {
  return from_json(nn::read_json_file(path), path.string());
}

Sizes with_blocks(Sizes sizes, std::int64_t blocks) {
  sizes.config["transformer"]["num_layers"] = blocks;
  return sizes;
}

}  // namespace sluice::synth
