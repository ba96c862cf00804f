#pragma once
// A slab as Python sees it, and its memory as an object that tensors keep alive.

#include <sluice/slab.h>

#include <nanobind/nanobind.h>

#include <memory>

namespace sluice::python {

struct PythonSlab {
  std::shared_ptr<Slab> slab = std::make_shared<Slab>();

  // Something made of it is still alive, or a load is writing to it.
  bool in_use() const { return slab.use_count() > 1; }
};

// All bytes of a slab, through the buffer protocol; writable.  A slab is not grown while one of these lives.
struct SlabMemory {
  std::shared_ptr<Slab> slab;
};

void bind_slab(nanobind::module_& module);

}  // namespace sluice::python
