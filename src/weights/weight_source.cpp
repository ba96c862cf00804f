#include "weights/weight_source.h"

#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "weights/dtype.h"
#include "weights/load_tensors.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cstring>
#include <set>
#include <unordered_map>
#include <utility>

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
  MappedSource(const ComponentTable& table, std::shared_ptr<const bytes::MappedCheckpoint> files)
      : table_(table), files_(std::move(files)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    for (const Parameter& parameter : group.parameters) files_->prefetch(tensor_of(table_, parameter));
    for (const Parameter& parameter : group.parameters) {
      const TensorInfo& tensor = tensor_of(table_, parameter);
      std::span<const std::byte> bytes = files_->view(tensor);
      if (bytes.empty() || aligned_for(bytes.data(), tensor.dtype)) {
        *parameter.slot = in_place(bytes, tensor, parameter);
      } else {
        *parameter.slot = empty_for(tensor, parameter);
        std::memcpy(parameter.slot->data_ptr(), bytes.data(), bytes.size());
      }
    }
    return WeightLease(group);
  }

  void check() const override { files_->check(); }
  Bytes bytes_read() const override { return files_->bytes_viewed(); }

 private:
  ComponentTable table_;
  std::shared_ptr<const bytes::MappedCheckpoint> files_;
};

class HostSource final : public WeightSource {
 public:
  HostSource(const ComponentTable& table, Reading reading) : table_(table), reading_(std::move(reading)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    read_missing(group);
    for (const Parameter& parameter : group.parameters) *parameter.slot = resident_.at(parameter.name);
    return WeightLease(group);
  }

  void check() const override { bytes::require_unchanged(CheckpointAccess::state(table_.checkpoint)); }
  Bytes bytes_read() const override { return bytes_read_; }

 private:
  void read_missing(const ParameterGroup& group) {
    std::set<std::string> names;
    for (const Parameter& parameter : group.parameters) {
      if (!resident_.contains(parameter.name)) names.insert(tensor_of(table_, parameter).name);
    }
    if (names.empty()) return;
    const LoadPlan plan = plan_load(table_.checkpoint, {.filter = {.include = {names.begin(), names.end()}}});
    LoadReport report;
    const TensorMap tensors = load_tensors(plan, {}, reading_.options, &report, nullptr, reading_.cancel);
    for (const Parameter& parameter : group.parameters) {
      auto tensor = tensors.find(tensor_of(table_, parameter).name);
      if (tensor != tensors.end()) resident_.emplace(parameter.name, tensor->second.view(parameter.shape));
    }
    bytes_read_ += report.bytes;
    if (reading_.loaded) reading_.loaded(report);
  }

  const ComponentTable table_;
  const Reading reading_;
  std::unordered_map<std::string, at::Tensor> resident_;
  Bytes bytes_read_ = 0;
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
                                                 std::shared_ptr<const bytes::MappedCheckpoint> files) {
  return std::make_unique<MappedSource>(table, std::move(files));
}

std::unique_ptr<WeightSource> make_weight_source(const ComponentTable& table, Reading reading) {
  return std::make_unique<HostSource>(table, std::move(reading));
}

}  // namespace sluice::weights
