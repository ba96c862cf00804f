#pragma once
// Cases about files: what is read, what is refused, under which names.

#include "parity/case.h"
#include "parity/results.h"

namespace sluice::parity {

Results run_safetensors_reading(const Case& parity_case);
Results run_single_file(const Case& parity_case);

}  // namespace sluice::parity
