#pragma once
// Quantized matrices of a checkpoint, recognised by their tensors' dtypes and companions, never by which
// layer they belong to.  For a parameter "L.weight":
//
//   fp8  L.weight F8_E4M3 [out, in]; scale "L.weight_scale" or "L.scale_weight", F32 with one element;
//        "L.input_scale" / "L.scale_input" and one marker "scaled_fp8" are known and not used.  No scale in
//        the whole checkpoint: all of them are 1.
//   nf4  L.weight U8 [ceil(n / 2), 1] or [ceil(n / 2)], "L.weight.absmax" F32 [ceil(n / 64)],
//        "L.weight.quant_map" F32 [16], "L.weight.quant_state.bitsandbytes__nf4" U8 (JSON).

#include "weights/component.h"

#include <string>
#include <vector>

namespace sluice::weights {

// Whether a tensor only says how a file is quantized ("scaled_fp8", under any prefix); nothing else needs it.
bool is_quantization_marker(const TensorInfo& tensor);

// Moves what belongs to quantized matrices from table.tensors to table.quantized.  Error(bad_input), every
// problem by name: a quantized weight without scale while others have one, a scale without its weight, both
// scale names on one weight, a scale of more than one element or another dtype, double quantization
// (nested_absmax), sizes that do not fit each other.  Returns warnings: fp8 without any scale.
std::vector<std::string> gather_quantized(ComponentTable& table);

enum class BlockScales {
  read,  // all: a ninth of an nf4 checkpoint
  skip,  // before a run, which finds what is not finite where it arises
};

// Reads scales, code tables and quant states, which opening does not.  Error(bad_input) naming the tensor: a
// scale that is not finite or not above 0, an absmax that is negative or not finite, another code table,
// quant_state of another type, block size or shape.  A ninth of what nf4 matrices have, in pieces of 1 MiB.
void check_quantized(const ComponentTable& table, BlockScales blocks = BlockScales::read);

}  // namespace sluice::weights
