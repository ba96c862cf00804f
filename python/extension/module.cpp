// sluice._bytes: what the Python package needs of the byte layer.  Private; its callers are in src/sluice.
#include "checkpoint_binding.h"
#include "errors.h"
#include "load_binding.h"
#include "slab_binding.h"

#include <sluice/version.h>

#include <nanobind/stl/string_view.h>

NB_MODULE(_bytes, module) {
  using namespace sluice::python;
  // Tensors that live until the interpreter ends keep their slab; that is no leak.
  nanobind::set_leak_warnings(false);
  translate_errors();
  bind_checkpoint(module);
  bind_slab(module);
  bind_load(module);
  module.attr("version") = sluice::version();
}
