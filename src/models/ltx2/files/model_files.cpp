#include "models/ltx2/files/model_files.h"

#include "models/ltx2/files/config_translation.h"
#include "models/ltx2/files/key_map.h"
#include "models/ltx2/files/version.h"
#include "nn/json_file.h"
#include "nn/metadata_config.h"
#include "weights/quantized.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::ltx2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// One file a component (2.5) or a checkpoint without some of them.
void require_components(const std::map<ComponentKind, ComponentFiles>& components, const std::string& where) {
  std::string missing;
  for (ComponentKind kind : kComponentKinds) {
    if (!components.contains(kind))
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", to_string(kind));
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::bad_input, fmt::format("{}: the checkpoint lacks the {}", where, missing),
              "use a complete LTX-2.3 checkpoint: one file with all components, or a diffusers folder");
}

void check_class(const json& config, ComponentKind kind, const std::string& where) {
  auto name = config.find("_class_name");
  if (name == config.end() || !name->is_string() || *name == diffusers_class(kind)) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: the {} is a {}, this program reads {}", where, to_string(kind),
                          name->get<std::string>(), diffusers_class(kind)),
              "use the folder of an LTX-2.3 pipeline");
}

}  // namespace

std::vector<weights::IgnoreRule> unused_tensors(ComponentKind kind) {
  const std::string why = "statistics that no part of the pipeline reads";
  switch (kind) {
    case ComponentKind::vae:
      return {{"per_channel_statistics.channel", why},
              {"per_channel_statistics.mean-of-stds", why},
              {"per_channel_statistics.mean-of-stds_over_std-of-means", why}};
    default:
      return {};
  }
}

ModelFiles ModelFiles::open(const fs::path& path) {
  ModelFiles files;
  files.path_ = path;
  if (!fs::exists(path)) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no such file or folder", path.string()),
                "give --model a .safetensors file, a folder of shards with an index, or a diffusers folder");
  }
  if (fs::is_directory(path) && fs::exists(path / "model_index.json")) {
    files.layout_ = Layout::diffusers_folder;
    files.open_folder();
  } else {
    files.open_single_file();
  }
  require_components(files.components_, path.string());
  files.gather_quantized();
  return files;
}

void ModelFiles::open_single_file() {
  Checkpoint checkpoint = Checkpoint::open(path_);
  const std::string where = path_.string();
  version_ = checked_version(checkpoint);
  const json config = nn::metadata_config(checkpoint);
  const BlockNames blocks = vae_block_names(config.value("vae", json::object()), where);

  std::vector<std::string> strangers;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    auto name = classify(tensor.name);
    if (!name) {
      if (!weights::is_quantization_marker(tensor)) strangers.push_back(tensor.name);
      continue;
    }
    auto [component, fresh] = components_.try_emplace(name->kind);
    if (fresh) component->second.table = {std::string(to_string(name->kind)), checkpoint, {}};
    auto [entry, added] = component->second.table.tensors.emplace(diffusers_name(*name, blocks), tensor);
    if (!added) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: '{}' and '{}' are names of the same parameter", where, entry->second.name,
                              tensor.name),
                  "use the file as published");
    }
  }
  if (!strangers.empty()) {
    warnings_.push_back(fmt::format("{}: {} tensors belong to no known component, the first is '{}'", where,
                                    strangers.size(), strangers.front()));
  }
  for (auto& [kind, component] : components_) {
    auto lookup = [&table = component.table](std::string_view name) -> const TensorInfo* {
      auto found = table.tensors.find(name);
      return found == table.tensors.end() ? nullptr : &found->second;
    };
    component.config = diffusers_config(kind, config, lookup, where);
    component.where = fmt::format("{}: {}", where, to_string(kind));
  }
}

void ModelFiles::open_folder() {
  const json index = nn::read_json_file(path_ / "model_index.json");
  for (ComponentKind kind : kComponentKinds) {
    const std::string name(to_string(kind));
    const fs::path folder = path_ / name;
    if (!index.contains(name) || !fs::is_directory(folder)) continue;
    ComponentFiles component;
    component.config = nn::read_json_file(folder / "config.json");
    component.where = (folder / "config.json").string();
    check_class(component.config, kind, component.where);
    component.table = weights::whole_checkpoint(name, Checkpoint::open(folder));
    components_.emplace(kind, std::move(component));
  }
  if (fs::path scheduler = path_ / "scheduler" / "scheduler_config.json"; fs::exists(scheduler)) {
    scheduler_config_ = nn::read_json_file(scheduler).dump();
  }
}

void ModelFiles::gather_quantized() {
  for (auto& [kind, component] : components_) {
    for (std::string& warning : weights::gather_quantized(component.table))
      warnings_.push_back(std::move(warning));
  }
}

std::vector<Checkpoint> ModelFiles::checkpoints() const {
  if (layout_ == Layout::single_file) return {components_.begin()->second.table.checkpoint};
  std::vector<Checkpoint> all;
  for (const auto& [kind, component] : components_) all.push_back(component.table.checkpoint);
  return all;
}

}  // namespace sluice::ltx2
