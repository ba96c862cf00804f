#pragma once
// Which file and which names hold each component of a checkpoint: the only place that knows layouts.  Opens
// the published single file (or its shards with an index) and the diffusers folder; reads headers and configs
// only.

#include "models/ltx2/files/component_kind.h"
#include "weights/component.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::ltx2 {

struct ComponentFiles {
  weights::ComponentTable table;
  nlohmann::json config;  // under diffusers' keys
  std::string where;      // names the config in messages
};

enum class Layout { single_file, diffusers_folder };

class ModelFiles {
 public:
  // Error(bad_input / corrupt_file / mismatch): not a checkpoint of this family, config missing, another
  // version, a component missing, a quantized matrix without what belongs to it.
  static ModelFiles open(const std::filesystem::path& path);

  Layout layout() const { return layout_; }
  const std::filesystem::path& path() const { return path_; }
  const std::string& version() const { return version_; }  // "2.3.0"; empty in folders, which do not say
  const ComponentFiles& component(ComponentKind kind) const { return components_.at(kind); }

  // scheduler/scheduler_config.json of a folder, as text.
  const std::optional<std::string>& scheduler_config() const { return scheduler_config_; }

  // Every distinct checkpoint, for header checksums and backends.
  std::vector<Checkpoint> checkpoints() const;

  // Tensors of the single file under no known prefix, fp8 without scales and the like.  One line each.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void open_single_file();
  void open_folder();
  void gather_quantized();

  Layout layout_ = Layout::single_file;
  std::filesystem::path path_;
  std::string version_;
  std::map<ComponentKind, ComponentFiles> components_;
  std::optional<std::string> scheduler_config_;
  std::vector<std::string> warnings_;
};

// Tensors of a component that no program of this kind reads, beside what the models' own rules say.
std::vector<weights::IgnoreRule> unused_tensors(ComponentKind kind);

}  // namespace sluice::ltx2
