#include "pipeline/quantize_input.h"

#include "base/log.h"
#include "bytes/format/checkpoint_state.h"
#include "bytes/format/shard_index.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

bool is_index(const std::string& name) {
  return name.find(".safetensors.index.") != std::string::npos;
}

// Weights that are read, or other copies of them: large, and not what was asked for.
bool holds_weights(const fs::path& file) {
  constexpr std::array<std::string_view, 7> kWeights = {".safetensors", ".bin",  ".pt",     ".pth",
                                                        ".ckpt",        ".gguf", ".msgpack"};
  return is_index(file.filename().string()) ||
         std::ranges::find(kWeights, file.extension().string()) != kWeights.end();
}

// "diffusion_pytorch_model" of its index or its only file.
weights::ShardNames names_of_component(const fs::path& folder) {
  const bytes::CheckpointFiles files = bytes::locate_checkpoint(folder);
  const std::string name = (files.index ? *files.index : files.single).filename().string();
  return {.stem = name.substr(0, name.find(".safetensors")), .always_numbered = files.index.has_value()};
}

bool has_safetensors(const fs::path& folder) {
  const fs::directory_iterator entries(folder);
  return std::any_of(begin(entries), end(entries), [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && !is_hidden(entry.path()) && entry.path().extension() == ".safetensors";
  });
}

void add_checkpoint(QuantizeInput& input, const fs::path& path, const fs::path& folder,
                    const weights::ShardNames& names) {
  Checkpoint checkpoint = Checkpoint::open(path);
  for (const std::string& warning : checkpoint.warnings()) log_warning(warning);
  TensorPlaces places = find_places(checkpoint);
  input.checkpoints.push_back({std::move(checkpoint), folder, names, std::move(places)});
}

void add_files(QuantizeInput& input, const fs::path& root) {
  for (fs::recursive_directory_iterator at(root), end; at != end; ++at) {
    if (is_hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file() && holds_weights(at->path())) {
      if (at->path().extension() != ".safetensors" && !is_index(at->path().filename().string()))
        log_warning(fmt::format("{}: holds weights of another kind and is not copied", at->path().string()));
    } else if (at->is_regular_file()) {
      input.files.push_back(fs::relative(at->path(), root));
    }
  }
  std::ranges::sort(input.files);
}

void add_components(QuantizeInput& input) {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(input.path)) {
    if (entry.is_directory() && !is_hidden(entry.path()) && has_safetensors(entry.path()))
      folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  for (const fs::path& folder : folders)
    add_checkpoint(input, folder, folder.filename(), names_of_component(folder));
}

}  // namespace

bool QuantizeInput::holds(QuantizeComponent component) const {
  return std::ranges::any_of(checkpoints, [&](const InputCheckpoint& checkpoint) {
    return std::ranges::any_of(checkpoint.places,
                               [&](const auto& place) { return place.second.component == component; });
  });
}

QuantizeInput open_quantize_input(const fs::path& path) {
  QuantizeInput input{.path = path};
  // An index stands for its folder.
  if (is_index(path.filename().string()) && fs::is_regular_file(path))
    input.path = path.has_parent_path() ? path.parent_path() : ".";
  if (!fs::is_directory(input.path)) {
    add_checkpoint(input, input.path, {}, {});
    return input;
  }
  if (fs::exists(input.path / "model_index.json")) {
    add_components(input);
  } else {
    // With a config it is a component, whose file keeps its name.
    const bool component = fs::exists(input.path / "config.json");
    add_checkpoint(input, path, {}, component ? names_of_component(path) : weights::ShardNames());
  }
  add_files(input, input.path);
  return input;
}

std::vector<weights::SourceFile> source_files(const QuantizeInput& input) {
  std::vector<weights::SourceFile> sources;
  for (const InputCheckpoint& part : input.checkpoints) {
    const auto& state = CheckpointAccess::state(part.checkpoint);
    for (std::size_t i = 0; i < state.shards.size(); ++i) {
      sources.push_back({.name = (part.folder / state.shards[i].path.filename()).string(),
                         .size = state.identities[i].size,
                         .modified_ns = state.identities[i].modified_ns,
                         .header_checksum = state.shards[i].header_checksum});
    }
  }
  return sources;
}

}  // namespace sluice::pipeline
