#include "load_binding.h"

#include "conversions.h"
#include "memory_sink.h"
#include "python_progress.h"
#include "slab_binding.h"

#include <sluice/error.h>
#include <sluice/memory.h>
#include <sluice/sinks.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace sluice::python {
namespace {

using Memory = std::pair<std::uintptr_t, Bytes>;  // address, size

std::span<std::byte> span_of(const Memory& memory) {
  return {reinterpret_cast<std::byte*>(memory.first), memory.second};
}

void make_options(ReadOptions* self, std::string_view backend, std::string_view cache, unsigned threads,
                  std::optional<Bytes> pool) {
  new (self) ReadOptions{.backend = parse_read_backend(backend),
                         .cache = parse_cache_policy(cache),
                         .threads = threads,
                         .pool = pool.value_or(kDefaultPool)};
}

std::string name_of(const LoadPlan& plan) {
  return plan.checkpoint().path().string();
}

// `fresh`: bytes at the destinations that were never written to, and so are yet to be taken from the system.
void require_memory_for(const LoadPlan& plan, Bytes fresh, bool all_have_places, const ReadOptions& options) {
  require_memory({.targets = fresh, .pool = options.pool, .staging = plan.staging_bytes(all_have_places)},
                 available_memory(), name_of(plan));
}

// places: address and size by target; None: through `staging` and `complete`.
nb::dict load_into_memory(const LoadPlan& plan, const std::vector<std::optional<Memory>>& places,
                          const Memory& staging, nb::object complete, const ReadOptions& options,
                          nb::object tell) {
  const bool all_have_places =
      std::ranges::all_of(places, [](const auto& place) { return place.has_value(); });
  std::vector<std::optional<std::span<std::byte>>> spans;
  for (const std::optional<Memory>& place : places)
    spans.push_back(place ? std::optional(span_of(*place)) : std::nullopt);
  if (spans.size() != plan.targets().size())
    throw Error(ErrorKind::internal, "there must be one place for each target");
  MemorySink sink(std::move(spans), span_of(staging), complete);
  PythonProgress progress(tell);
  LoadReport report;
  {
    nb::gil_scoped_release release;
    require_memory_for(plan, staging.second, all_have_places, options);
    report = load(plan, sink, options, &progress);
  }
  return report_of(report);
}

// (memory, offset of each target, report)
nb::tuple load_into_slab(const LoadPlan& plan, const PythonSlab& into, const ReadOptions& options,
                         nb::object tell) {
  if (into.in_use()) {
    throw Error(ErrorKind::usage, "tensors of an earlier load into this slab are still alive",
                "let go of them first, or give another slab");
  }
  const std::shared_ptr<Slab> slab = into.slab;
  PythonProgress progress(tell);
  LoadReport report;
  const SlabLayout layout = lay_out(plan);
  {
    nb::gil_scoped_release release;
    require_memory_for(plan, layout.size - std::min(layout.size, slab->touched()), true, options);
    load_dictionary(plan, slab, options, &report, &progress);
  }
  nb::list offsets;
  for (Bytes offset : layout.offsets) offsets.append(offset);
  return nb::make_tuple(SlabMemory{slab}, offsets, report_of(report));
}

}  // namespace

void bind_load(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<ReadOptions>(module, "ReadOptions")
      .def("__init__", &make_options, "backend"_a, "cache"_a, "threads"_a, "pool"_a.none());
  module.def("load_into_memory", &load_into_memory, "plan"_a, "places"_a, "staging"_a, "complete"_a.none(),
             "options"_a, "progress"_a.none());
  module.def("load_into_slab", &load_into_slab, "plan"_a, "slab"_a, "options"_a, "progress"_a.none());
  module.def("parse_bytes", &parse_bytes, "text"_a);
}

}  // namespace sluice::python
