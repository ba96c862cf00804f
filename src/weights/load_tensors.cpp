#include "weights/load_tensors.h"

#include "base/log.h"
#include "base/text.h"
#include "weights/device_errors.h"
#include "weights/device_sink.h"
#include "weights/dtype.h"

#include <sluice/error.h>
#include <sluice/sinks.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::weights {
namespace {

void require_known_dtypes(const LoadPlan& plan) {
  for (const TargetTensor& target : plan.targets()) {
    try {
      to_scalar_type(target.dtype);
    } catch (const Error& error) {
      throw Error(
          error.kind(),
          fmt::format("{}: {}: {}", plan.checkpoint().path().string(), in_quotes(target.name), error.what()),
          error.hint());
    }
  }
}

TensorMap load_to_host(const LoadPlan& plan, std::shared_ptr<Slab> slab, const ReadOptions& options,
                       LoadReport* report, Progress* progress, const CancelToken* cancel) {
  if (!slab) slab = std::make_shared<Slab>();
  const TensorDictionary dictionary = load_dictionary(plan, slab, options, report, progress, cancel);
  TensorMap tensors;
  for (const auto& [target, bytes] : dictionary.entries()) {
    tensors.emplace(target.name, at::from_blob(
                                     bytes.data(), target.shape, [slab](void*) {},
                                     at::TensorOptions().dtype(to_scalar_type(target.dtype))));
  }
  return tensors;
}

at::Tensor allocate_plainly(const std::vector<std::int64_t>& shape, at::ScalarType dtype,
                            c10::Device device) {
  return at::empty(shape, at::TensorOptions().dtype(dtype).device(device));
}

// Tensors on a device, as far as it has room.
struct DeviceTensors {
  std::vector<at::Tensor> tensors;  // by target
  std::size_t refused = 0;
  Bytes refused_bytes = 0;
};

DeviceTensors allocate(const LoadPlan& plan, const Placement& placement) {
  const AllocateTensor allocate = placement.allocate ? placement.allocate : allocate_plainly;
  DeviceTensors made;
  for (const TargetTensor& target : plan.targets()) {
    const at::ScalarType dtype = to_scalar_type(target.dtype);
    with_device_errors(placement.device, "allocate", [&] {
      try {
        made.tensors.push_back(allocate(target.shape, dtype, placement.device));
      } catch (const c10::OutOfMemoryError&) {
        made.tensors.push_back(allocate_plainly(target.shape, dtype, at::kCPU));
        ++made.refused;
        made.refused_bytes += target.size;
      }
    });
  }
  return made;
}

TensorMap load_to_device(const LoadPlan& plan, const Placement& placement, const ReadOptions& options,
                         LoadReport* report, Progress* progress, const CancelToken* cancel) {
  DeviceTensors made = allocate(plan, placement);
  std::string warning;
  if (made.refused > 0) {
    warning =
        fmt::format("{}: no room for {} of {} tensors ({}): they stay in host memory", placement.device.str(),
                    made.refused, made.tensors.size(), format_bytes(made.refused_bytes));
    log_warning(warning);
  }
  DeviceSink sink(plan, made.tensors, {.fresh = true});
  LoadReport done = load(plan, sink, options, progress, cancel);
  sink.finish();
  if (!warning.empty()) done.warnings.push_back(warning);
  done.warnings.insert(done.warnings.end(), sink.warnings().begin(), sink.warnings().end());
  if (report != nullptr) *report = std::move(done);
  TensorMap tensors;
  for (std::size_t i = 0; i < made.tensors.size(); ++i)
    tensors.emplace(plan.targets()[i].name, made.tensors[i]);
  return tensors;
}

}  // namespace

TensorMap load_tensors(const LoadPlan& plan, const Placement& placement, const ReadOptions& options,
                       LoadReport* report, Progress* progress, const CancelToken* cancel) {
  require_known_dtypes(plan);
  if (placement.device.is_cpu()) return load_to_host(plan, placement.slab, options, report, progress, cancel);
  return load_to_device(plan, placement, options, report, progress, cancel);
}

}  // namespace sluice::weights
