#pragma once
// The half of quant_fp8/* and quant_nf4/* that quantizes; the other half reads what is quantized.

#include "parity/case.h"
#include "parity/results.h"

namespace sluice::parity {

// Adds what the manifest asks for of "codes", "scale", "probe_code", "packed" and "absmax".
void add_codes(const Case& parity_case, Results& results);

// Of the cases "refusals": what quantizing refuses.
void claim_quantizing_refusals(const Case& parity_case, Results& results);

}  // namespace sluice::parity
