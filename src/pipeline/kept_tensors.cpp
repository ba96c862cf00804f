#include "pipeline/kept_tensors.h"

#include "bytes/format/checksum.h"
#include "weights/dtype.h"
#include "weights/tensor_file.h"

#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <span>

namespace sluice::pipeline {
namespace {

constexpr const char* kOwner = "owner";
constexpr const char* kChecksum = "checksum";

std::span<const std::byte> bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

// Of names, dtypes, shapes, values and metadata.
std::string checksum_of(const KeptTensors& kept) {
  bytes::Checksum checksum;
  auto add = [&](const std::string& text) {
    checksum.add(std::as_bytes(std::span(text)));
    checksum.add(std::as_bytes(std::span("", 1)));
  };
  for (const auto& [name, tensor] : kept.tensors) {
    add(name);
    add(fmt::format("{} {}", dtype_name(weights::from_scalar_type(tensor.scalar_type())),
                    format_shape(tensor.sizes().vec())));
    checksum.add(bytes_of(tensor));
  }
  for (const auto& [key, value] : kept.metadata) {
    if (key == kChecksum) continue;
    add(key);
    add(value);
  }
  return checksum.text();
}

}  // namespace

void write_kept(const std::filesystem::path& path, const KeptTensors& kept, const std::string& owner,
                Flush flush) {
  KeptTensors file{.tensors = {}, .metadata = kept.metadata};
  for (const auto& [name, tensor] : kept.tensors) file.tensors.emplace(name, tensor.contiguous());
  file.metadata[kOwner] = owner;
  file.metadata[kChecksum] = checksum_of(file);
  weights::write_tensors(path, {file.tensors.begin(), file.tensors.end()}, file.metadata, flush);
}

std::optional<KeptTensors> read_kept(const std::filesystem::path& path, const std::string& owner) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const Checkpoint checkpoint = Checkpoint::open(path);
  KeptTensors kept{.tensors = {}, .metadata = checkpoint.metadata()};
  for (const TensorInfo& info : checkpoint.tensors()) {
    const at::Tensor tensor =
        at::empty(info.shape, at::TensorOptions().dtype(weights::to_scalar_type(info.dtype)));
    checkpoint.read(info, {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()});
    kept.tensors.emplace(info.name, tensor);
  }
  if (kept.metadata[kChecksum] != checksum_of(kept)) {
    throw Error(ErrorKind::corrupt_file, fmt::format("{}: the checksum does not match", path.string()));
  }
  if (kept.metadata[kOwner] != owner) return std::nullopt;
  return kept;
}

}  // namespace sluice::pipeline
