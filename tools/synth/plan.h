#pragma once
// What will be written, decided before the first byte: files with their tensors, texts beside them.  Pure:
// --dry-run prints a plan, write_plan() carries it out.

#include "synth/named_shape.h"
#include "synth/parameters.h"
#include "synth/sizes.h"

#include <sluice/checkpoint.h>
#include <sluice/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace sluice::synth {

// The values follow from seed, component and `source`, so that they are the same in every layout.
struct PlannedTensor {
  std::string name;       // in the file
  std::string component;  // "transformer"
  NamedShape source;      // under the model's own name
  Dtype dtype = Dtype::BF16;

  Bytes size() const;
};

struct PlannedFile {
  std::filesystem::path path;
  std::vector<PlannedTensor> tensors;  // by name, as safetensors' own writers lay them out
  std::map<std::string, std::string> metadata;
};

struct PlannedText {
  std::filesystem::path path;
  std::string text;
};

struct PlannedCopy {
  std::filesystem::path from, to;
};

struct Plan {
  std::vector<PlannedFile> files;
  std::vector<PlannedText> texts;
  std::vector<PlannedCopy> copies;

  Bytes data_size() const;
  std::size_t tensors() const;
};

struct PlanOptions {
  Dtype dtype = Dtype::BF16;
  std::string model_version = "2.3.0";
  Bytes shard_size = GiB(5);  // no shard holds more, unless a single tensor is larger
};

// One file with all components under the published names.
Plan plan_single_file(const std::filesystem::path& file, std::span<const Component> components,
                      const Sizes& sizes, const PlanOptions& options);

// The same tensors over shards in a folder, with model.safetensors.index.json.
Plan plan_shards(const std::filesystem::path& folder, std::span<const Component> components,
                 const Sizes& sizes, const PlanOptions& options);

// A folder a component with config.json; sharded with an index where it is larger than a shard.
Plan plan_diffusers(const std::filesystem::path& folder, std::span<const Component> components,
                    const PlanOptions& options);

enum class Index { if_needed, always };

struct ShardSet {
  std::filesystem::path folder;
  std::string stem;
  Bytes shard_size = GiB(5);
  std::map<std::string, std::string> metadata;
  Index index = Index::if_needed;
};

// Splits tensors over files "<stem>-00001-of-0000N.safetensors" and adds "<stem>.safetensors.index.json";
// where all fit into one and an index is not asked for, they are "<stem>.safetensors".
void add_shards(Plan& plan, const ShardSet& set, std::vector<PlannedTensor> tensors);

}  // namespace sluice::synth
