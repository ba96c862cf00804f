#include "weights/device_sink.h"

#include "base/log.h"
#include "base/text.h"
#include "weights/device_errors.h"
#include "weights/tensor_identity.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace sluice::weights {
namespace {

enum class Way {
  none,      // nobody wants it
  in_place,  // its own memory takes the bytes
  ring,      // on a device, in one piece
  strided,   // in pieces, or stored otherwise than it reads
};

Way way_to(const at::Tensor& tensor) {
  if (!tensor.defined()) return Way::none;
  if (!tensor.is_contiguous() || tensor.is_conj() || tensor.is_neg()) return Way::strided;
  return tensor.is_cpu() ? Way::in_place : Way::ring;
}

std::span<std::byte> host_bytes(const at::Tensor& contiguous) {
  return {static_cast<std::byte*>(contiguous.mutable_data_ptr()), contiguous.nbytes()};
}

std::vector<std::optional<std::size_t>> find_same(const std::vector<at::Tensor>& tensors) {
  std::map<TensorIdentity, std::size_t> first;
  std::vector<std::optional<std::size_t>> same_as(tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].defined() || tensors[i].numel() == 0) continue;
    auto [entry, fresh] = first.emplace(identity_of(tensors[i]), i);
    if (!fresh) same_as[i] = entry->second;
  }
  return same_as;
}

}  // namespace

struct DeviceSink::Lane {
  Lane(c10::Device device, Bytes slot, const std::vector<at::Tensor>& flat)
      : pinned(allocate_pinned(static_cast<std::int64_t>(kDeviceSlots * slot), device)),
        engine(make_copy_engine(device, kDeviceSlots, flat)),
        ring(*engine, slots(slot)) {}

  std::vector<std::span<std::byte>> slots(Bytes size) const {
    std::vector<std::span<std::byte>> slots;
    for (std::size_t i = 0; i < kDeviceSlots; ++i)
      slots.push_back(host_bytes(pinned.bytes).subspan(i * size, size));
    return slots;
  }

  PinnedMemory pinned;
  std::unique_ptr<CopyEngine> engine;
  DeviceRing ring;  // last: it waits for the copies out of the memory above
};

DeviceSink::DeviceSink(const LoadPlan& plan, std::vector<at::Tensor> tensors, Options options)
    : plan_(plan),
      tensors_(std::move(tensors)),
      options_(options),
      same_as_(find_same(tensors_)),
      flat_(tensors_.size()) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (way_to(tensors_[i]) != Way::ring || same_as_[i]) continue;
    flat_[i] = flat_bytes(tensors_[i]);
    lane_to(tensors_[i].device());  // what a device refuses is known before anything is read
  }
}

DeviceSink::~DeviceSink() = default;

DeviceSink::Lane& DeviceSink::lane_to(c10::Device device) {
  std::unique_ptr<Lane>& lane = lanes_[device.str()];
  if (lane) return *lane;
  lane = std::make_unique<Lane>(device, options_.slot, flat_);
  if (const std::string& warning = lane->pinned.warning; !warning.empty()) {
    log_warning(warning);
    warnings_.push_back(warning);
  }
  return *lane;
}

std::span<std::byte> DeviceSink::destination(std::size_t target) {
  if (way_to(tensors_[target]) != Way::in_place || same_as_[target]) return {};
  return host_bytes(tensors_[target]);
}

void DeviceSink::take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  if (same_as_[target]) {
    compare(target, offset, bytes);
  } else if (const Way way = way_to(tensors_[target]); way == Way::ring) {
    lane_to(tensors_[target].device()).ring.append(target, offset, bytes);
  } else if (way == Way::strided) {
    take_strided(target, offset, bytes);
  }
}

// Targets come one after the other, so that one scratch is enough.
void DeviceSink::take_strided(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  if (offset == 0)
    scratch_ = at::empty(tensors_[target].sizes(), tensors_[target].options().device(at::kCPU));
  std::memcpy(host_bytes(scratch_).data() + offset, bytes.data(), bytes.size());
}

void DeviceSink::complete(std::size_t target) {
  const at::Tensor& tensor = tensors_[target];
  if (way_to(tensor) != Way::strided || same_as_[target] || tensor.numel() == 0) return;
  with_device_errors(tensor.device(), "write a tensor that is not contiguous", [&] {
    const c10::InferenceMode no_graph;
    tensor.copy_(scratch_);
  });
  scratch_ = at::Tensor();
}

// The tensor it is compared to was complete before: targets come in the plan's order.
void DeviceSink::compare(std::size_t target, Bytes offset, std::span<const std::byte> bytes) {
  const std::size_t first = *same_as_[target];
  const c10::InferenceMode no_graph;
  if (!compared_bytes_.defined() || compared_ != target) {
    finish();
    compared_bytes_ = flat_bytes(tensors_[first].resolve_conj().resolve_neg().contiguous());
    compared_ = target;
  }
  const at::Tensor there =
      compared_bytes_.narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(bytes.size()))
          .to(at::kCPU);
  if (std::memcmp(there.const_data_ptr(), bytes.data(), bytes.size()) == 0) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: tensors {} and {} differ, but the model has one parameter for both",
                          plan_.checkpoint().path().string(), in_quotes(plan_.targets()[first].name),
                          in_quotes(plan_.targets()[target].name)),
              "leave one of them out, or load into a model whose parameters are not tied");
}

void DeviceSink::finish() {
  for (auto& [device, lane] : lanes_) lane->ring.finish();
}

}  // namespace sluice::weights
