#pragma once
// Copies out of host memory to tensors of a device, on a stream of its own.  Written on c10's device-generic
// streams and events: one source for every device that LibTorch knows, no vendor's headers.

#include "weights/device_ring/copy_engine.h"

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <string>
#include <vector>

namespace sluice::weights {

// All bytes of a contiguous tensor, as a tensor of bytes in one dimension; no copy.
at::Tensor flat_bytes(const at::Tensor& contiguous);

// `destinations`: the flat bytes of the tensors that copy() numbers; others than this device's are not used.
// They are looked at when a copy begins, and must exist as long as the engine does.  Copies begin behind what
// the device's current stream was given before the engine was made.  On the CPU, copies are done when copy()
// returns. Error(io) where the device has no streams.
std::unique_ptr<CopyEngine> make_copy_engine(c10::Device device, std::size_t slots,
                                             const std::vector<at::Tensor>& destinations);

// Host memory that devices copy from without a detour, where the system grants it.
struct PinnedMemory {
  at::Tensor bytes;
  std::string warning;  // why it is plain memory; empty if it is pinned
};
PinnedMemory allocate_pinned(std::int64_t size, c10::Device device);

}  // namespace sluice::weights
