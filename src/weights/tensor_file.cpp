#include "weights/tensor_file.h"

#include "bytes/format/writer.h"
#include "weights/dtype.h"
#include "weights/load_tensors.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::weights {
namespace {

std::span<const std::byte> bytes_of(const at::Tensor& contiguous) {
  return {static_cast<const std::byte*>(contiguous.const_data_ptr()), contiguous.nbytes()};
}

std::vector<bytes::TensorSpec> f32_specs(const TensorStream::Shapes& shapes) {
  std::vector<bytes::TensorSpec> specs;
  for (const auto& [name, shape] : shapes) specs.push_back({name, Dtype::F32, shape});
  return specs;
}

}  // namespace

TensorMap read_tensors(const std::filesystem::path& path) {
  return load_tensors(plan_load(Checkpoint::open(path)));
}

void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata, Flush flush) {
  std::vector<bytes::TensorSpec> specs;
  for (const auto& [name, tensor] : tensors) {
    specs.push_back({name, from_scalar_type(tensor.scalar_type()), tensor.sizes().vec()});
  }
  bytes::SafetensorsWriter writer(path, std::move(specs), metadata);
  for (const auto& [name, tensor] : tensors) writer.append(bytes_of(tensor.contiguous()));
  writer.finish(flush);
}

struct TensorStream::State {
  bytes::SafetensorsWriter writer;
  Shapes shapes;
  std::size_t next = 0;
};

TensorStream::TensorStream(const std::filesystem::path& path, Shapes shapes,
                           const std::map<std::string, std::string>& metadata) {
  bytes::SafetensorsWriter writer(path, f32_specs(shapes), metadata);
  state_ = std::make_unique<State>(State{std::move(writer), std::move(shapes)});
}

TensorStream::~TensorStream() = default;
TensorStream::TensorStream(TensorStream&&) noexcept = default;

void TensorStream::append(std::string_view name, const at::Tensor& tensor) {
  const auto& shapes = state_->shapes;
  if (state_->next >= shapes.size() || shapes[state_->next].first != name ||
      tensor.sizes() != at::IntArrayRef(shapes[state_->next].second)) {
    throw Error(ErrorKind::internal,
                fmt::format("tensor '{}' was not announced in this place and shape", name));
  }
  ++state_->next;
  state_->writer.append(bytes_of(tensor.to(at::kFloat).contiguous()));
}

void TensorStream::finish() {
  state_->writer.finish();
}

}  // namespace sluice::weights
