#include "slab_binding.h"

namespace sluice::python {
namespace {

namespace nb = nanobind;

int get_buffer(PyObject* exporter, Py_buffer* view, int flags) {
  const auto memory = nb::inst_ptr<SlabMemory>(exporter)->slab->bytes();
  return PyBuffer_FillInfo(view, exporter, memory.data(), static_cast<Py_ssize_t>(memory.size()), 0, flags);
}

PyType_Slot memory_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

}  // namespace

void bind_slab(nb::module_& module) {
  nb::class_<PythonSlab>(module, "Slab")
      .def(nb::init<>())
      .def_prop_ro("size", [](const PythonSlab& self) { return self.slab->bytes().size(); })
      .def_prop_ro("in_use", &PythonSlab::in_use);
  nb::class_<SlabMemory>(module, "SlabMemory", nb::type_slots(memory_slots));
}

}  // namespace sluice::python
