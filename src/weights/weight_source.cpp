#include "weights/weight_source.h"

#include "bytes/format/checkpoint_state.h"
#include "bytes/format/unchanged.h"
#include "bytes/plan/plan_pieces.h"
#include "weights/dtype.h"
#include "weights/pieces.h"

#include <sluice/sinks.h>

#include <ATen/ATen.h>

#include <cstring>
#include <map>
#include <tuple>
#include <utility>

namespace sluice::weights {
namespace {

bool aligned_for(const void* address, Dtype dtype) {
  return reinterpret_cast<std::uintptr_t>(address) % (dtype_bits(dtype) / 8) == 0;
}

// LibTorch has no read-only tensor; a mapping itself is read-only, so a write would be caught.
at::Tensor tensor_at(std::span<const std::byte> bytes, const TensorInfo& tensor) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), tensor.shape,
                       at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
}

at::Tensor empty_for(const TensorInfo& tensor) {
  return at::empty(tensor.shape, at::TensorOptions().dtype(to_scalar_type(tensor.dtype)));
}

class MappedSource final : public WeightSource {
 public:
  MappedSource(const ComponentTable& table, std::shared_ptr<const bytes::MappedCheckpoint> files)
      : table_(table), files_(std::move(files)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    const std::vector<Piece> pieces = pieces_of(table_, group);
    for (const Piece& piece : pieces) files_->prefetch(piece.bytes);
    for (const auto& [tensor, slot] : pieces) {
      std::span<const std::byte> bytes = files_->view(tensor);
      if (bytes.empty() || aligned_for(bytes.data(), tensor.dtype)) {
        *slot = tensor_at(bytes, tensor);
      } else {
        *slot = empty_for(tensor);
        std::memcpy(slot->data_ptr(), bytes.data(), bytes.size());
      }
    }
    return WeightLease(group);
  }

  at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) override {
    auto [rows, bytes] = read_rows(table_, table, ids);
    rows_read_ += bytes;
    return rows;
  }

  void check() const override { files_->check(); }
  Bytes bytes_read() const override { return files_->bytes_viewed() + rows_read_; }

 private:
  ComponentTable table_;
  std::shared_ptr<const bytes::MappedCheckpoint> files_;
  Bytes rows_read_ = 0;
};

// Where a run lies: shard, offset, size.
using Extent = std::tuple<std::size_t, Bytes, Bytes>;

Extent extent_of(const TensorInfo& tensor) {
  return {tensor.shard, tensor.offset, tensor.size};
}

class HostSource final : public WeightSource {
 public:
  HostSource(const ComponentTable& table, Reading reading) : table_(table), reading_(std::move(reading)) {}

  WeightLease acquire(const ParameterGroup& group) override {
    const std::vector<Piece> pieces = pieces_of(table_, group);
    read_missing(pieces);
    for (const auto& [tensor, slot] : pieces) *slot = tensor_at(resident_.at(extent_of(tensor)), tensor);
    return WeightLease(group);
  }

  at::Tensor rows(const Parameter& table, std::span<const std::int64_t> ids) override {
    auto [rows, bytes] = read_rows(table_, table, ids);
    bytes_read_ += bytes;
    return rows;
  }

  void check() const override { bytes::require_unchanged(CheckpointAccess::state(table_.checkpoint)); }
  Bytes bytes_read() const override { return bytes_read_; }

 private:
  void read_missing(std::span<const Piece> pieces) {
    std::map<Extent, TensorInfo> missing;
    for (const auto& [tensor, slot] : pieces) {
      if (!resident_.contains(extent_of(tensor))) missing.emplace(extent_of(tensor), tensor);
    }
    if (missing.empty()) return;
    std::vector<TensorInfo> wanted;
    for (const auto& [extent, tensor] : missing) wanted.push_back(tensor);
    LoadReport report;
    dictionaries_.push_back(load_dictionary(bytes::plan_pieces(table_.checkpoint, wanted), nullptr,
                                            reading_.options, &report, nullptr, reading_.cancel));
    for (std::size_t i = 0; i < wanted.size(); ++i)
      resident_.emplace(extent_of(wanted[i]), dictionaries_.back().entries()[i].bytes);
    bytes_read_ += report.bytes;
    if (reading_.loaded) reading_.loaded(report);
  }

  const ComponentTable table_;
  const Reading reading_;
  std::vector<TensorDictionary> dictionaries_;
  std::map<Extent, std::span<const std::byte>> resident_;
  Bytes bytes_read_ = 0;
};

}  // namespace

WeightLease::WeightLease(const ParameterGroup& group, std::function<void()> give_back)
    : group_(&group), give_back_(std::move(give_back)) {}

WeightLease::WeightLease(WeightLease&& other) noexcept
    : group_(std::exchange(other.group_, nullptr)), give_back_(std::move(other.give_back_)) {}

WeightLease::~WeightLease() {
  if (!group_) return;
  for (const Parameter& parameter : group_->parameters) {
    *parameter.slot = at::Tensor();
    if (parameter.scales) *parameter.scales = at::Tensor();
  }
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
