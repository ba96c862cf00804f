#pragma once
// A text encoder whose work and memory show: a given one with feed-forwards of 50,000 zeros in place of its
// own, 20 GFLOP a layer and 200 MB of activations at 1024 tokens.  The weights are a sparse file.

#include "support/synthetic_file.h"
#include "support/temporary_folder.h"

#include <sluice/checkpoint.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::test {

// A header with tensors of these shapes one behind the other, and a hole where their data would be.
inline void write_sparse(const std::filesystem::path& file, const std::vector<TensorInfo>& tensors,
                         const nlohmann::json& metadata = nullptr) {
  nlohmann::json header;
  if (!metadata.is_null()) header["__metadata__"] = metadata;
  Bytes end = 0;
  for (const TensorInfo& tensor : tensors) {
    const Bytes size = static_cast<Bytes>(tensor.elements()) * dtype_bits(tensor.dtype) / 8;
    header[tensor.name] = {
        {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape}, {"data_offsets", {end, end + size}}};
    end += size;
  }
  const std::string content = SyntheticFile().header(header.dump()).content();
  write_file(file, content);
  std::filesystem::resize_file(file, content.size() + end);
}

// `folder` must not exist.
inline void write_wide_text_encoder(const std::filesystem::path& narrow,
                                    const std::filesystem::path& folder) {
  constexpr std::int64_t kInner = 50'000;
  std::filesystem::create_directory(folder);
  std::filesystem::copy(narrow / "tokenizer.json", folder);
  nlohmann::json config = nlohmann::json::parse(file_content(narrow / "config.json"));
  nlohmann::json& inner = config.at("text_config").at("intermediate_size");
  std::vector<TensorInfo> tensors = Checkpoint::open(narrow).tensors();
  for (TensorInfo& tensor : tensors) {
    for (std::int64_t& extent : tensor.shape) {
      if (extent == inner && tensor.name.find(".mlp.") != std::string::npos) extent = kInner;
    }
  }
  inner = kInner;
  write_file(folder / "config.json", config.dump());
  write_sparse(folder / "model.safetensors", tensors);
}

}  // namespace sluice::test
