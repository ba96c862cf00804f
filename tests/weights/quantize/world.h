#pragma once
// A checkpoint of a few matrices and what lies between them, and the folder that it is quantized into.

#include "bytes/format/writer.h"
#include "bytes/plan/part_copy.h"
#include "support/temporary_folder.h"
#include "weights/quantize/encode.h"
#include "weights/quantize/quantize_checkpoint.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace sluice::weights {

using Content = std::vector<std::byte>;

struct MadeTensor {
  bytes::TensorSpec spec;
  std::vector<float> values;

  Content content() const {
    Content stored(values.size() * dtype_bits(spec.dtype) / 8);
    bytes::cast_elements(Dtype::F32, std::as_bytes(std::span(values)), spec.dtype, stored);
    return stored;
  }
};

inline MadeTensor random_tensor(std::mt19937& random, std::string name, Dtype dtype,
                                std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) count *= extent;
  std::normal_distribution<float> normal(0, 0.05f);
  MadeTensor tensor{{std::move(name), dtype, std::move(shape)},
                    std::vector<float>(static_cast<std::size_t>(count))};
  for (float& value : tensor.values) value = normal(random);
  return tensor;
}

inline void write_tensors(const std::filesystem::path& path, const std::vector<MadeTensor>& tensors) {
  std::vector<Content> contents;
  for (const MadeTensor& tensor : tensors) contents.push_back(tensor.content());
  std::vector<bytes::TensorData> data;
  for (std::size_t i = 0; i < tensors.size(); ++i) data.push_back({tensors[i].spec, contents[i]});
  bytes::write_safetensors(path, data);
}

// Odd sizes and dtypes, a matrix of many reads, and the names that are quantized: "*.matrix".
inline std::vector<MadeTensor> usual_tensors() {
  std::mt19937 random(3);
  return {random_tensor(random, "a.matrix", Dtype::BF16, {96, 128}),
          random_tensor(random, "b.vector", Dtype::BF16, {33}),
          random_tensor(random, "c.matrix", Dtype::F32, {7, 9}),
          random_tensor(random, "d.empty", Dtype::F32, {0, 4}),
          random_tensor(random, "e.matrix", Dtype::BF16, {600, 1100}),
          random_tensor(random, "f.table", Dtype::F32, {5, 3}),
          random_tensor(random, "g.matrix", Dtype::F16, {50, 65}),
          random_tensor(random, "h.matrix", Dtype::BF16, {1, 1})};
}

inline std::set<std::string, std::less<>> matrices_of(const Checkpoint& checkpoint) {
  std::set<std::string, std::less<>> names;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.name.ends_with("matrix")) names.insert(tensor.name);
  }
  return names;
}

struct Made {
  QuantFormat format = QuantFormat::nf4;
  Bytes shard_size = GiB(1);
  QuantizeMemory memory = split_memory(MiB(448), MiB(2));
  ReadOptions read;
  Progress* progress = nullptr;
  const CancelToken* cancel = nullptr;
};

inline QuantizationManifest manifest_for(const Made& made) {
  return {.format = made.format == QuantFormat::fp8 ? "fp8" : "nf4",
          .components = {"transformer"},
          .shard_size = made.shard_size,
          .sources = {{.name = "model.safetensors", .size = 1, .modified_ns = 2, .header_checksum = "3"}}};
}

// Quantizes `source` into `target`; what it throws leaves "<target>.partial".
inline QuantizeCount make(const std::filesystem::path& source, const std::filesystem::path& target,
                          const Made& made = {}) {
  const Checkpoint checkpoint = Checkpoint::open(source);
  QuantizeTask task = make_task(checkpoint, matrices_of(checkpoint), made.format, made.shard_size, {});
  PartialFolder folder(target, manifest_for(made));
  QuantizeCount count;
  CheckpointQuantizer quantizer(
      {.read = made.read, .memory = made.memory, .progress = made.progress, .cancel = made.cancel});
  quantizer.quantize(task, folder, count);
  folder.commit(Existing::refuse);
  return count;
}

inline std::map<std::string, Content> contents_of(const std::filesystem::path& path) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  std::map<std::string, Content> contents;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    Content& bytes = contents[tensor.name];
    bytes.resize(tensor.size);
    checkpoint.read(tensor, bytes);
  }
  return contents;
}

inline std::map<std::string, std::string> files_of(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file())
      files[std::filesystem::relative(entry.path(), folder).string()] = test::file_content(entry.path());
  }
  return files;
}

}  // namespace sluice::weights
