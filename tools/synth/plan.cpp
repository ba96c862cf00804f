#include "synth/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace sluice::synth {
namespace {

using nlohmann::json;

std::vector<PlannedTensor> as_single_file(const Component& component, const Sizes& sizes, Dtype dtype) {
  const std::vector<NamedShape> named = single_file_tensors(component, sizes);
  std::vector<PlannedTensor> tensors;
  for (std::size_t i = 0; i < named.size(); ++i) {
    tensors.push_back({named[i].name, std::string(to_string(component.kind)), component.tensors[i], dtype});
  }
  return tensors;
}

std::vector<PlannedTensor> all_as_single_file(std::span<const Component> components, const Sizes& sizes,
                                              Dtype dtype) {
  std::vector<PlannedTensor> all;
  for (const Component& component : components) {
    for (PlannedTensor& tensor : as_single_file(component, sizes, dtype)) all.push_back(std::move(tensor));
  }
  return all;
}

std::map<std::string, std::string> published_metadata(const Sizes& sizes, const PlanOptions& options) {
  return {{"config", sizes.config.dump()},
          {"model_version", options.model_version},
          {"license", "synthetic weights, no licence needed"}};
}

void sort_by_name(std::vector<PlannedTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(),
            [](const PlannedTensor& a, const PlannedTensor& b) { return a.name < b.name; });
}

// Tensors in their order, a new shard where the next one would not fit.
std::vector<std::vector<PlannedTensor>> split(std::vector<PlannedTensor> tensors, Bytes limit) {
  std::vector<std::vector<PlannedTensor>> shards;
  Bytes filled = 0;
  for (PlannedTensor& tensor : tensors) {
    if (shards.empty() || filled + tensor.size() > limit) {
      shards.emplace_back();
      filled = 0;
    }
    filled += tensor.size();
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

}  // namespace

Bytes PlannedTensor::size() const {
  const Bytes elements = std::accumulate(
      source.shape.begin(), source.shape.end(), Bytes{1},
      [](Bytes product, std::int64_t extent) { return product * static_cast<Bytes>(extent); });
  return elements * dtype_bits(dtype) / 8;
}

Bytes Plan::data_size() const {
  Bytes size = 0;
  for (const PlannedFile& file : files) {
    for (const PlannedTensor& tensor : file.tensors) size += tensor.size();
  }
  return size;
}

std::size_t Plan::tensors() const {
  std::size_t count = 0;
  for (const PlannedFile& file : files) count += file.tensors.size();
  return count;
}

void add_shards(Plan& plan, const ShardSet& set, std::vector<PlannedTensor> tensors) {
  auto shards = split(std::move(tensors), set.shard_size);
  if (shards.size() <= 1 && set.index == Index::if_needed) {
    if (shards.empty()) return;
    sort_by_name(shards.front());
    plan.files.push_back({set.folder / (set.stem + ".safetensors"), std::move(shards.front()), set.metadata});
    return;
  }
  json weight_map;
  Bytes total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("{}-{:05}-of-{:05}.safetensors", set.stem, i + 1, shards.size());
    sort_by_name(shards[i]);
    for (const PlannedTensor& tensor : shards[i]) {
      weight_map[tensor.name] = name;
      total += tensor.size();
    }
    plan.files.push_back({set.folder / name, std::move(shards[i]), set.metadata});
  }
  const json index = {{"metadata", {{"total_size", total}}}, {"weight_map", std::move(weight_map)}};
  plan.texts.push_back({set.folder / (set.stem + ".safetensors.index.json"), index.dump(2)});
}

Plan plan_single_file(const std::filesystem::path& file, std::span<const Component> components,
                      const Sizes& sizes, const PlanOptions& options) {
  PlannedFile planned{file, all_as_single_file(components, sizes, options.dtype),
                      published_metadata(sizes, options)};
  sort_by_name(planned.tensors);
  Plan plan;
  plan.files.push_back(std::move(planned));
  return plan;
}

Plan plan_shards(const std::filesystem::path& folder, std::span<const Component> components,
                 const Sizes& sizes, const PlanOptions& options) {
  Plan plan;
  add_shards(plan,
             {.folder = folder,
              .stem = "model",
              .shard_size = options.shard_size,
              .metadata = published_metadata(sizes, options),
              .index = Index::always},
             all_as_single_file(components, sizes, options.dtype));
  return plan;
}

Plan plan_diffusers(const std::filesystem::path& folder, std::span<const Component> components,
                    const PlanOptions& options) {
  Plan plan;
  json index = {{"_class_name", "LTX2Pipeline"}};
  for (const Component& component : components) {
    const std::string name(to_string(component.kind));
    const bool own_module =
        component.kind == ltx2::ComponentKind::connectors || component.kind == ltx2::ComponentKind::vocoder;
    index[name] = {own_module ? "ltx2" : "diffusers", component.config.at("_class_name")};
    plan.texts.push_back({folder / name / "config.json", component.config.dump(2)});
    std::vector<PlannedTensor> tensors;
    for (const NamedShape& tensor : component.tensors)
      tensors.push_back({tensor.name, name, tensor, options.dtype});
    add_shards(plan,
               {.folder = folder / name,
                .stem = "diffusion_pytorch_model",
                .shard_size = options.shard_size,
                .metadata = {{"format", "pt"}}},
               std::move(tensors));
  }
  plan.texts.push_back({folder / "model_index.json", index.dump(2)});
  return plan;
}

}  // namespace sluice::synth
