// The translation unit that carries the precompiled ATen header for every layer above it.
#include "aten/version.h"

#include <torch/headeronly/version.h>

namespace sluice::aten {

const char* version() { return TORCH_VERSION; }

}  // namespace sluice::aten
