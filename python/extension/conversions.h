#pragma once
// Values of the byte layer as Python shows them, and back.  All of it needs the GIL.

#include <sluice/load.h>

#include <nanobind/nanobind.h>

#include <span>
#include <string_view>

namespace sluice::python {

namespace nb = nanobind;

// Messages may quote paths, which are bytes: what is not UTF-8 becomes \xNN.
nb::str text_of(std::string_view text);

nb::list lines_of(std::span<const std::string> lines);

nb::tuple shape_of(std::span<const std::int64_t> shape);

// (name, dtype, shape, file, offset, size): file is an index, offset counts from the file's start.
nb::tuple tensor_of(const TensorInfo& tensor);
// (name, dtype, shape, size)
nb::tuple target_of(const TargetTensor& target);

nb::dict report_of(const LoadReport& report);  // keys as the members are called

Dtype parse_dtype(std::string_view name);  // Error(usage)

}  // namespace sluice::python
