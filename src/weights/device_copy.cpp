#include "weights/device_copy.h"

#include "weights/device_errors.h"

#include <ATen/ATen.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>

#include <cstring>
#include <exception>

namespace sluice::weights {
namespace {

at::Tensor part_of(const std::vector<at::Tensor>& destinations, std::size_t to, Bytes offset,
                   std::size_t size) {
  return destinations[to].narrow(0, static_cast<std::int64_t>(offset), static_cast<std::int64_t>(size));
}

at::Tensor as_tensor(std::span<const std::byte> bytes) {
  return at::from_blob(const_cast<std::byte*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())},
                       at::TensorOptions().dtype(at::kByte));
}

class HostCopy final : public CopyEngine {
 public:
  explicit HostCopy(const std::vector<at::Tensor>& destinations) : destinations_(destinations) {}

  void copy(std::span<const std::byte> from, std::size_t to, Bytes offset) override {
    std::memcpy(static_cast<std::byte*>(destinations_[to].mutable_data_ptr()) + offset, from.data(),
                from.size());
  }
  void record(std::size_t) override {}
  void wait(std::size_t) override {}
  void drain() noexcept override {}

 private:
  const std::vector<at::Tensor>& destinations_;
};

class StreamCopy final : public CopyEngine {
 public:
  StreamCopy(c10::Device device, std::size_t slots, const std::vector<at::Tensor>& destinations)
      : device_(device),
        guard_(device.type()),
        stream_(guard_.getStreamFromGlobalPool(device)),
        destinations_(destinations) {
    for (std::size_t i = 0; i < slots; ++i) marks_.emplace_back(device.type());
    // The destinations may still be in use by what was begun on them before.
    c10::Event before(device.type());
    before.record(guard_.getStream(device));
    before.block(stream_);
  }

  ~StreamCopy() override { drain(); }

  void copy(std::span<const std::byte> from, std::size_t to, Bytes offset) override {
    with_device_errors(device_, "copy to the device", [&] {
      const c10::InferenceMode no_graph;
      const c10::StreamGuard on_stream(stream_);
      part_of(destinations_, to, offset, from.size()).copy_(as_tensor(from), /*non_blocking=*/true);
    });
  }

  void record(std::size_t slot) override {
    with_device_errors(device_, "mark a copy", [&] { marks_[slot].record(stream_); });
  }

  void wait(std::size_t slot) override {
    with_device_errors(device_, "finish a copy", [&] { marks_[slot].synchronize(); });
  }

  void drain() noexcept override {
    try {
      stream_.synchronize();
    } catch (const std::exception&) {
      // A device that cannot even be waited for copies nothing more; its error was or will be met by wait().
    }
  }

 private:
  const c10::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream stream_;
  std::vector<c10::Event> marks_;  // by slot
  const std::vector<at::Tensor>& destinations_;
};

}  // namespace

at::Tensor flat_bytes(const at::Tensor& contiguous) {
  return contiguous.detach().view({-1}).view(at::kByte);
}

std::unique_ptr<CopyEngine> make_copy_engine(c10::Device device, std::size_t slots,
                                             const std::vector<at::Tensor>& destinations) {
  if (device.is_cpu()) return std::make_unique<HostCopy>(destinations);
  std::unique_ptr<CopyEngine> engine;
  with_device_errors(device, "open a stream",
                     [&] { engine = std::make_unique<StreamCopy>(device, slots, destinations); });
  return engine;
}

PinnedMemory allocate_pinned(std::int64_t size, c10::Device device) {
  const auto options = at::TensorOptions().dtype(at::kByte);
  try {
    return {at::empty({size}, options.pinned_memory(true)), {}};
  } catch (const c10::Error& error) {
    return {at::empty({size}, options),
            fmt::format("{}: copying out of memory that is not pinned, which is slower: {}", device.str(),
                        first_line(error))};
  }
}

}  // namespace sluice::weights
