#pragma once
// Checkpoint and LoadPlan for Python: tables, and plans made from them.

#include <nanobind/nanobind.h>

namespace sluice::python {

void bind_checkpoint(nanobind::module_& module);

}  // namespace sluice::python
