#include "weights/weight_source.h"

#include "weights/dtype.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <unordered_map>

namespace sluice::weights {
namespace {

const TensorInfo& tensor_of(const ComponentTable& table, const Parameter& parameter) {
  auto found = table.tensors.find(parameter.name);
  if (found == table.tensors.end()) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: parameter '{}' was never accounted for", table.name, parameter.name));
  }
  return found->second;
}

bool aligned_for(const void* address, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(address) % (dtype_bits(dtype) / 8) == 0;
}

at::Tensor in_place(std::span<const std::byte> bytes, const TensorInfo& tensor, const Parameter& parameter) {
  // LibTorch has no read-only tensor; the mapping itself is read-only, so a write would be caught.
  void* address = const_cast<std::byte*>(bytes.data());
  return at::from_blob(address, parameter.shape, at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
}

at::Tensor empty_for(const TensorInfo& tensor, const Parameter& parameter) {
  return at::empty(parameter.shape, at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
}

class MappedSource final : public WeightSource {
 public:
  MappedSource(const ComponentTable& table, std::shared_ptr<const bytes::ReadBackend> backend)
      : table_(table), backend_(std::move(backend)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    for (const Parameter& parameter : group.parameters) {
      const TensorInfo& tensor = tensor_of(table_, parameter);
      std::span<const std::byte> bytes = backend_->view(tensor);
      if (bytes.empty() || aligned_for(bytes.data(), tensor.dtype)) {
        *parameter.slot = in_place(bytes, tensor, parameter);
      } else {
        *parameter.slot = empty_for(tensor, parameter);
        std::memcpy(parameter.slot->data_ptr(), bytes.data(), bytes.size());
      }
    }
    return WeightLease(group);
  }

  void check() const override { backend_->check(); }
  Bytes bytes_read() const override { return backend_->bytes_read(); }

 private:
  ComponentTable table_;
  std::shared_ptr<const bytes::ReadBackend> backend_;
};

class HostSource final : public WeightSource {
 public:
  HostSource(const ComponentTable& table, std::shared_ptr<const bytes::ReadBackend> backend)
      : table_(table), backend_(std::move(backend)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    for (const Parameter& parameter : group.parameters) *parameter.slot = resident(parameter);
    return WeightLease(group);
  }

  void check() const override { backend_->check(); }
  Bytes bytes_read() const override { return backend_->bytes_read(); }

 private:
  const at::Tensor& resident(const Parameter& parameter) {
    at::Tensor& kept = resident_[parameter.name];
    if (!kept.defined()) {
      const TensorInfo& tensor = tensor_of(table_, parameter);
      at::Tensor fresh = empty_for(tensor, parameter);
      backend_->read(tensor, 0, {static_cast<std::byte*>(fresh.data_ptr()), tensor.size});
      kept = fresh;
    }
    return kept;
  }

  ComponentTable table_;
  std::shared_ptr<const bytes::ReadBackend> backend_;
  std::unordered_map<std::string, at::Tensor> resident_;
};

}  // namespace

WeightLease::WeightLease(const ParameterGroup& group, std::function<void()> give_back)
    : group_(&group), give_back_(std::move(give_back)) {}

WeightLease::WeightLease(WeightLease&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)), give_back_(std::move(other.give_back_)) {}

WeightLease::~WeightLease() {
  if (!group_) return;
  for (const Parameter& parameter : group_->parameters) *parameter.slot = at::Tensor();
  if (give_back_) give_back_();
}

std::unique_ptr<WeightSource> make_weight_source(const ComponentTable& table,
                                                 std::shared_ptr<const bytes::ReadBackend> backend) {
  if (backend->kind() == bytes::BackendKind::mmap)
    return std::make_unique<MappedSource>(table, std::move(backend));
  return std::make_unique<HostSource>(table, std::move(backend));
}

}  // namespace sluice::weights
