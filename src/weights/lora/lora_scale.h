#pragma once
// How strong a layer of an adapter is: alpha / rank, with alpha from wherever the file has it.

#include <sluice/checkpoint.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::weights {

class LoraScales {
 public:
  // Alphas of PEFT's configuration: adapter_config.json beside `adapter_model.safetensors`, or
  // "lora_adapter_metadata" in the metadata; of others' metadata "lora_alpha" or "ss_network_alpha".
  // What is wrong with them is added to `problems`, which outlives this as the checkpoint does: no JSON, no
  // finite number, patterns that are expressions, DoRA.
  LoraScales(const Checkpoint& checkpoint, const std::filesystem::path& file,
             std::vector<std::string>& problems);

  // alpha / rank of a layer, alpha / √rank where the configuration says rslora.  The layer's own tensor
  // counts most (one number of any dtype), then the configuration's pattern for the layer, then what is for
  // all layers; without any alpha is the rank.
  double of(std::string_view layer, std::int64_t rank, const TensorInfo* alpha);

  const std::string& base_model() const { return base_model_; }  // as the configuration names it; or empty

 private:
  void read_configuration(const std::string& text, const std::string& where);
  void read_key(const std::string& key, const nlohmann::json& value, const std::string& where);
  void add_pattern(std::string layer, const nlohmann::json& alpha, const std::string& where);
  std::optional<double> alpha_of(std::string_view layer, const TensorInfo* alpha);

  std::optional<double> number_in_metadata(const std::string& key);
  std::optional<double> number_in(const nlohmann::json& value, const std::string& where);
  std::optional<double> number_in(const TensorInfo& tensor);
  std::optional<double> finite(double value, const std::string& where);

  const Checkpoint& checkpoint_;
  std::vector<std::string>& problems_;
  std::optional<double> alpha_;
  std::map<std::string, double> patterns_;  // layers that are called or end so
  bool by_root_ = false;
  std::string base_model_;
};

}  // namespace sluice::weights
