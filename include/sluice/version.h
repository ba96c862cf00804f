#pragma once
// Which release of sluice this is.

#include <string_view>

namespace sluice {

std::string_view version();  // "0.1.0"

}  // namespace sluice
