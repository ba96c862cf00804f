#pragma once
// What a quantized folder was made of and by which rules: "quantization.json".  The same text tells an
// interrupted run where to go on, and what it must refuse to go on with.

#include <sluice/checkpoint.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::weights {

struct SourceFile {
  std::string name;  // within the input; never an absolute path
  Bytes size = 0;
  std::int64_t modified_ns = 0;
  std::string header_checksum;  // XXH3-128

  bool operator==(const SourceFile&) const = default;
};

struct FinishedFile {
  std::string name;  // within the folder
  Bytes size = 0;
  std::string checksum;  // XXH3-128
};

struct QuantizationManifest {
  std::string format;                   // "fp8"
  std::vector<std::string> components;  // those that are quantized
  Bytes shard_size = 0;
  std::size_t quantized_tensors = 0;
  std::vector<SourceFile> sources;
  std::vector<FinishedFile> files;
};

enum class Times {
  kept,  // of the sources: an unfinished run must see whether they have changed
  left_out,
};

std::string to_json(const QuantizationManifest& manifest, Times times);
// Error(bad_input) naming `file` for anything to_json() does not write.
QuantizationManifest parse_manifest(std::string_view json, std::string_view file);

// What differs in the way `wanted` is made from the way `begun` was; empty if nothing does.  Files do not
// count.
std::string difference(const QuantizationManifest& begun, const QuantizationManifest& wanted);

}  // namespace sluice::weights
