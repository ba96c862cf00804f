#include "checkpoint_binding.h"

#include "bytes/load/match_targets.h"
#include "bytes/plan/load_plan_state.h"
#include "bytes/plan/plan_box.h"
#include "conversions.h"

#include <sluice/error.h>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace sluice::python {
namespace {

using Renames = std::vector<std::pair<std::string, std::string>>;  // glob, name
using Casts =
    std::vector<std::tuple<std::string, std::string, std::optional<std::string>>>;  // glob, to, from
using Cuts = std::vector<std::pair<std::string, std::size_t>>;                      // glob, dim

// Only the files that hold something wanted.
Checkpoint open(const std::filesystem::path& path, std::vector<std::string> include,
                std::vector<std::string> exclude) {
  nb::gil_scoped_release release;
  if (include.empty() && exclude.empty()) return Checkpoint::open(path);
  const TensorFilter filter{.include = std::move(include), .exclude = std::move(exclude)};
  return Checkpoint::open(path, [&](std::string_view name) { return wanted_by(filter, name); });
}

nb::list tensors_of(const Checkpoint& checkpoint) {
  nb::list tensors;
  for (const TensorInfo& tensor : checkpoint.tensors()) tensors.append(tensor_of(tensor));
  return tensors;
}

nb::object find(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo* tensor = checkpoint.find(name);
  return tensor == nullptr ? nb::none() : nb::object(tensor_of(*tensor));
}

const TensorInfo& find_known(const Checkpoint& checkpoint, std::string_view name) {
  if (const TensorInfo* tensor = checkpoint.find(name)) return *tensor;
  throw Error(ErrorKind::internal, fmt::format("no tensor '{}'", name));
}

void read(const Checkpoint& checkpoint, std::string_view name, std::uintptr_t address, Bytes size) {
  const TensorInfo& tensor = find_known(checkpoint, name);
  nb::gil_scoped_release release;
  checkpoint.read(tensor, {reinterpret_cast<std::byte*>(address), size});
}

LoadPlan plan(const Checkpoint& checkpoint, std::vector<std::string> include,
              std::vector<std::string> exclude, const Renames& renames, const Casts& casts, unsigned rank,
              unsigned world, bool expert_parallel, const Cuts& cuts) {
  LoadRequest request{.filter = {.include = std::move(include), .exclude = std::move(exclude)},
                      .rank = {.index = rank, .world = world, .expert_parallel = expert_parallel}};
  for (const auto& [glob, dim] : cuts) request.rank.slices.push_back({glob, dim});
  for (const auto& [glob, name] : renames) request.transforms.rename(glob, name);
  for (const auto& [glob, to, from] : casts) {
    request.transforms.cast(glob, parse_dtype(to), from ? std::optional(parse_dtype(*from)) : std::nullopt);
  }
  nb::gil_scoped_release release;
  return plan_load(checkpoint, request);
}

LoadPlan plan_box(const Checkpoint& checkpoint, std::string_view name,
                  const std::vector<std::pair<std::int64_t, std::int64_t>>& box) {
  std::vector<bytes::Interval> intervals;
  for (const auto& [begin, end] : box) intervals.push_back({begin, end - begin});
  return bytes::plan_box(checkpoint, find_known(checkpoint, name), intervals);
}

std::size_t runs(const LoadPlan& plan) {
  return LoadPlanAccess::state(plan).ranges.size();
}

void read_box(const LoadPlan& plan, std::uintptr_t address, Bytes size) {
  nb::gil_scoped_release release;
  bytes::read_box(plan, {reinterpret_cast<std::byte*>(address), size});
}

nb::list targets_of(const LoadPlan& plan) {
  nb::list targets;
  for (const TargetTensor& target : plan.targets()) targets.append(target_of(target));
  return targets;
}

using Wanted = std::vector<std::tuple<std::string, std::string, std::vector<std::int64_t>>>;

void match(const LoadPlan& plan, const Wanted& names, bool ignore_unexpected) {
  std::vector<TargetTensor> wanted;
  for (const auto& [name, dtype, shape] : names) wanted.push_back({name, parse_dtype(dtype), shape});
  bytes::match_targets(plan, wanted,
                       ignore_unexpected ? UnexpectedTensors::ignore : UnexpectedTensors::refuse);
}

LoadPlan without(const LoadPlan& plan, const std::vector<bool>& left_out) {
  bytes::MatchedTargets matched(left_out.size());
  for (std::size_t i = 0; i < left_out.size(); ++i) {
    if (!left_out[i]) matched[i] = i;
  }
  return bytes::without_ignored(plan, matched);
}

nb::list files_of(const Checkpoint& checkpoint) {
  nb::list files;
  for (const Shard& shard : checkpoint.shards()) files.append(shard.path);
  return files;
}

}  // namespace

void bind_checkpoint(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Checkpoint>(module, "Checkpoint")
      .def_static("open", &open, "path"_a, "include"_a, "exclude"_a)
      .def_prop_ro("path", [](const Checkpoint& self) { return text_of(self.path().string()); })
      .def("tensors", &tensors_of)
      .def("find", &find, "name"_a)
      .def("files", &files_of)
      .def("metadata", [](const Checkpoint& self) { return self.metadata(); })
      .def("warnings", [](const Checkpoint& self) { return lines_of(self.warnings()); })
      .def("read", &read, "name"_a, "address"_a, "size"_a)
      .def("plan", &plan, "include"_a, "exclude"_a, "renames"_a, "casts"_a, "rank"_a, "world"_a,
           "expert_parallel"_a, "cuts"_a)
      .def("plan_box", &plan_box, "name"_a, "box"_a);
  nb::class_<LoadPlan>(module, "Plan")
      .def("targets", &targets_of)
      .def("match", &match, "wanted"_a, "ignore_unexpected"_a)
      .def("without", &without, "left_out"_a)
      .def("read_box", &read_box, "address"_a, "size"_a)
      .def_prop_ro("runs", &runs)
      .def_prop_ro("target_bytes", &LoadPlan::target_bytes)
      .def_prop_ro("read_bytes", &LoadPlan::read_bytes);
}

}  // namespace sluice::python
