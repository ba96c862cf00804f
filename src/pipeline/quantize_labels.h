#pragma once
// What a quantized checkpoint says about itself: in the metadata of its shards, in a component's config, and
// in the manifest.

#include "pipeline/quantize_input.h"

#include <sluice/quantize.h>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct QuantizeLabel {
  QuantizeFormat format = QuantizeFormat::fp8;
  std::vector<QuantizeComponent> components;
  std::size_t tensors = 0;  // quantized, of all checkpoints
};

// The source's metadata with "quantization"; for fp8 also with the "_quantization_metadata" that other
// programs of the family look for.  `matrices`: those of this checkpoint; without any the metadata stays.
std::map<std::string, std::string> label_metadata(std::map<std::string, std::string> metadata,
                                                  const QuantizeLabel& label, const TensorNames& matrices);

// A component's config.json with "quantization"; keys keep their order.  Error(bad_input) if it is none.
std::string label_config(const std::filesystem::path& config, const QuantizeLabel& label);

weights::QuantizationManifest manifest_of(const QuantizeInput& input, const QuantizeLabel& label,
                                          Bytes shard_size);

}  // namespace sluice::pipeline
