#pragma once
// A dictionary of tensors, read from files by one load.

#include "weights/named_tensors.h"

#include <sluice/load.h>
#include <sluice/slab.h>

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace sluice::weights {

// A new tensor of the device; throws c10::OutOfMemoryError where there is no room.
using AllocateTensor = std::function<at::Tensor(const std::vector<std::int64_t>& shape, at::ScalarType dtype,
                                                c10::Device device)>;

struct Placement {
  c10::Device device = at::kCPU;
  // On the CPU: what they are read into (nullptr: new memory); tensors read into it before are overwritten.
  std::shared_ptr<Slab> slab;
  AllocateTensor allocate;  // on other devices; empty: LibTorch's own allocator
};

// Every target of the plan.  On the CPU all tensors look into one slab, which lives as long as any of them.
// Tensors for which the device has no room stay in host memory, with one warning.
// Error(bad_input), before anything is read, for dtypes that LibTorch has no tensor of.
TensorMap load_tensors(const LoadPlan& plan, const Placement& placement = {}, const ReadOptions& options = {},
                       LoadReport* report = nullptr, Progress* progress = nullptr,
                       const CancelToken* cancel = nullptr);

}  // namespace sluice::weights
