#pragma once
// sluice::Error as the exception sluice.Error of Python, with its kind and its hint.

namespace sluice::python {

void translate_errors();  // once, while the module is being imported

}  // namespace sluice::python
