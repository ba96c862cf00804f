#pragma once
// What `quantize` was given: checkpoints, each with its place in the folder, and the files beside them.
// Headers only.

#include "pipeline/quantize_selection.h"
#include "weights/quantize/manifest.h"
#include "weights/quantize/quantized_layout.h"

#include <filesystem>
#include <vector>

namespace sluice::pipeline {

struct InputCheckpoint {
  Checkpoint checkpoint;
  std::filesystem::path folder;  // within the input and the output; empty: the input itself
  weights::ShardNames names;     // of what is written
  TensorPlaces places;
};

struct QuantizeInput {
  std::filesystem::path path;
  std::vector<InputCheckpoint> checkpoints;
  // Configs, tokenizers, texts: names within the input, to be copied.
  std::vector<std::filesystem::path> files;

  bool holds(QuantizeComponent component) const;
};

// Error(bad_input / corrupt_file) for what is no checkpoint.
QuantizeInput open_quantize_input(const std::filesystem::path& path);

// Every shard of every checkpoint.
std::vector<weights::SourceFile> source_files(const QuantizeInput& input);

}  // namespace sluice::pipeline
