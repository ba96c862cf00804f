#pragma once
// One file of what a run keeps: a safetensors file whose metadata has a checksum of all that is in it and
// names the request it belongs to, so that neither damage nor a file of another run is taken for it.

#include "base/temporary_file.h"
#include "weights/named_tensors.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace sluice::pipeline {

struct KeptTensors {
  weights::TensorMap tensors;                   // CPU
  std::map<std::string, std::string> metadata;  // with "owner" and "checksum" in the file
};

// Appears when complete.  Error(io).
void write_kept(const std::filesystem::path& path, const KeptTensors& kept, const std::string& owner,
                Flush flush);

// Empty if there is no such file or it has another owner.  Error(corrupt_file) if it is damaged.
std::optional<KeptTensors> read_kept(const std::filesystem::path& path, const std::string& owner);

}  // namespace sluice::pipeline
