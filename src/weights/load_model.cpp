#include "weights/load_model.h"

#include "base/text.h"
#include "bytes/load/match_targets.h"
#include "weights/device_sink.h"
#include "weights/dtype.h"
#include "weights/tensor_identity.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <ATen/MemoryOverlap.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace sluice::weights {
namespace {

constexpr std::size_t kNamesListed = 8;

// The end of a sentence that begins with the parameter's name; empty: it can be read into.
std::string why_not_writable(const at::Tensor& tensor) {
  if (!tensor.defined()) return "is no tensor";
  if (tensor.is_meta()) return "has no memory yet (device meta)";
  if (tensor.layout() != at::kStrided) return fmt::format("is {}, not strided", c10::str(tensor.layout()));
  if (!tensor.has_storage()) return "has no memory of its own";
  if (!has_file_dtype(tensor.scalar_type()))
    return fmt::format("is {}, which no file holds", at::toString(tensor.scalar_type()));
  if (at::has_internal_overlap(tensor) == at::MemOverlap::Yes)
    return "is expanded: its elements share memory";
  return {};
}

void require_writable(std::span<const NamedTensor> parameters) {
  std::vector<std::string> problems;
  for (const auto& [name, tensor] : parameters) {
    if (const std::string reason = why_not_writable(tensor); !reason.empty())
      problems.push_back(fmt::format("{} {}", in_quotes(name), reason));
  }
  if (problems.empty()) return;
  throw Error(ErrorKind::usage,
              fmt::format("{} of {} parameters cannot be read into: {}", problems.size(), parameters.size(),
                          list_first(problems, kNamesListed)),
              "give every parameter strided memory of its own first (to_empty, contiguous)");
}

// Bytes of the host that are read in place.
struct Extent {
  const std::byte* begin;
  const std::byte* end;
  const NamedTensor* parameter;
};

// Tied parameters are one tensor under two names; anything else that overlaps would be written twice.
void require_apart(std::span<const NamedTensor> parameters) {
  std::vector<Extent> extents;
  for (const NamedTensor& parameter : parameters) {
    const at::Tensor& tensor = parameter.second;
    if (!tensor.is_cpu() || !tensor.is_contiguous() || tensor.numel() == 0) continue;
    const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
    extents.push_back({begin, begin + tensor.nbytes(), &parameter});
  }
  std::ranges::stable_sort(extents, {}, &Extent::begin);
  const Extent* widest = nullptr;
  for (const Extent& extent : extents) {
    if (widest && extent.begin < widest->end &&
        identity_of(widest->parameter->second) != identity_of(extent.parameter->second)) {
      throw Error(ErrorKind::usage,
                  fmt::format("parameters {} and {} overlap in memory without being the same tensor",
                              in_quotes(widest->parameter->first), in_quotes(extent.parameter->first)),
                  "load into one of them, or give each memory of its own");
    }
    if (!widest || extent.end > widest->end) widest = &extent;
  }
}

// The parameters that the checkpoint must have: of tied ones those that it has, or all if it has none.
std::vector<const NamedTensor*> without_absent_ties(const LoadPlan& plan,
                                                    std::span<const NamedTensor> parameters) {
  std::set<std::string_view> there;
  for (const TargetTensor& target : plan.targets()) there.insert(target.name);
  std::set<TensorIdentity> found;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.numel() > 0 && there.contains(name)) found.insert(identity_of(tensor));
  }
  std::vector<const NamedTensor*> kept;
  for (const NamedTensor& parameter : parameters) {
    const auto& [name, tensor] = parameter;
    if (there.contains(name) || tensor.numel() == 0 || !found.contains(identity_of(tensor)))
      kept.push_back(&parameter);
  }
  return kept;
}

std::vector<TargetTensor> wanted_for(std::span<const NamedTensor* const> parameters) {
  std::vector<TargetTensor> wanted;
  for (const NamedTensor* parameter : parameters) {
    const at::Tensor& tensor = parameter->second;
    wanted.push_back({parameter->first, from_scalar_type(tensor.scalar_type()), tensor.sizes().vec()});
  }
  return wanted;
}

// As any writing operator does, so that a graph that saved the old values notices.
void bump_versions(std::span<const NamedTensor> parameters) {
  for (const auto& [name, tensor] : parameters) {
    if (!tensor.is_inference()) tensor.unsafeGetTensorImpl()->bump_version();
  }
}

}  // namespace

LoadReport load_into_model(const LoadPlan& plan, std::span<const NamedTensor> parameters,
                           UnexpectedTensors unexpected, const ReadOptions& options, Progress* progress,
                           const CancelToken* cancel) {
  require_writable(parameters);
  const std::vector<const NamedTensor*> expected = without_absent_ties(plan, parameters);
  const bytes::MatchedTargets matched = bytes::match_targets(plan, wanted_for(expected), unexpected);
  require_apart(parameters);

  std::vector<at::Tensor> tensors;
  for (const auto& index : matched) tensors.push_back(index ? expected[*index]->second : at::Tensor());
  const LoadPlan wanted = bytes::without_ignored(plan, matched);
  DeviceSink sink(wanted, std::move(tensors), {});
  LoadReport report = load(wanted, sink, options, progress, cancel);
  sink.finish();
  bump_versions(parameters);
  report.warnings.insert(report.warnings.end(), sink.warnings().begin(), sink.warnings().end());
  return report;
}

}  // namespace sluice::weights
