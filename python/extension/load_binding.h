#pragma once
// The loads themselves, which run without the GIL.

#include <nanobind/nanobind.h>

namespace sluice::python {

void bind_load(nanobind::module_& module);

}  // namespace sluice::python
