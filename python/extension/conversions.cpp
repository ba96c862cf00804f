#include "conversions.h"

#include "base/text.h"
#include "bytes/format/dtype.h"

#include <sluice/error.h>

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <fmt/format.h>

namespace sluice::python {
namespace {

nb::dict shard_report_of(const ShardLoadReport& shard) {
  nb::dict report;
  report["path"] = shard.path;
  report["backend"] = text_of(shard.backend);
  report["reason"] = text_of(shard.reason);
  report["threads"] = shard.threads;
  report["bytes"] = shard.bytes;
  report["requests"] = shard.requests;
  report["touch_seconds"] = shard.touch_seconds;
  report["cached_before"] = shard.cached_before;
  return report;
}

}  // namespace

nb::str text_of(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (decoded == nullptr) throw nb::python_error();
  return nb::steal<nb::str>(decoded);
}

nb::list lines_of(std::span<const std::string> lines) {
  nb::list list;
  for (const std::string& line : lines) list.append(text_of(line));
  return list;
}

nb::tuple shape_of(std::span<const std::int64_t> shape) {
  nb::list extents;
  for (std::int64_t extent : shape) extents.append(extent);
  return nb::tuple(extents);
}

nb::tuple tensor_of(const TensorInfo& tensor) {
  return nb::make_tuple(tensor.name, dtype_name(tensor.dtype), shape_of(tensor.shape), tensor.shard,
                        tensor.offset, tensor.size);
}

nb::tuple target_of(const TargetTensor& target) {
  return nb::make_tuple(target.name, dtype_name(target.dtype), shape_of(target.shape), target.size);
}

nb::dict report_of(const LoadReport& load) {
  nb::dict report;
  report["seconds"] = load.seconds;
  report["touch_seconds"] = load.touch_seconds;
  report["bytes"] = load.bytes;
  report["requests"] = load.requests;
  report["page_faults"] = load.page_faults;
  report["cpu_seconds"] = load.cpu_seconds;
  report["pool_bytes"] = load.pool_bytes;
  nb::list shards;
  for (const ShardLoadReport& shard : load.shards) shards.append(shard_report_of(shard));
  report["shards"] = shards;
  report["warnings"] = lines_of(load.warnings);
  return report;
}

Dtype parse_dtype(std::string_view name) {
  if (auto dtype = bytes::find_dtype(name)) return *dtype;
  throw Error(ErrorKind::usage, fmt::format("{} is no dtype", in_quotes(name)),
              "give a name of the file format, such as BF16");
}

}  // namespace sluice::python
