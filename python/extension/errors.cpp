#include "errors.h"

#include "conversions.h"

#include <sluice/error.h>

namespace sluice::python {
namespace {

// The class is Python's own, so that Python code raises the same one.
void raise(const Error& error) {
  nb::object type = nb::module_::import_("sluice._error").attr("Error");
  nb::object value =
      type(text_of(error.what()), text_of(error_kind_info(error.kind()).name), text_of(error.hint()));
  PyErr_SetObject(type.ptr(), value.ptr());
}

}  // namespace

void translate_errors() {
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      raise(error);
    }
  });
}

}  // namespace sluice::python
