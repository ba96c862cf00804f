#pragma once
// A component's tensors as its model names them, wherever and under whatever names the files hold them, and
// the two-sided accounting between that table and the parameters a model declares.

#include "weights/parameters.h"

#include <sluice/checkpoint.h>

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::weights {

enum class QuantFormat { fp8, nf4 };

// What belongs to a quantized matrix beside its values.
struct QuantizedTensor {
  QuantFormat format = QuantFormat::fp8;
  // fp8: F32, one element, or none where no tensor of the checkpoint has a scale; nf4: F32, absmax a block.
  std::optional<TensorInfo> scales;
  std::vector<TensorInfo> checked;  // nf4: quant_map and quant_state, looked at once and not leased
};

struct ComponentTable {
  std::string name;                                        // "transformer", for messages
  Checkpoint checkpoint;                                   // the files
  std::map<std::string, TensorInfo, std::less<>> tensors;  // model's parameter name -> where it lies
  // Parameters of `tensors` that are quantized (see quantized.h).
  std::map<std::string, QuantizedTensor, std::less<>> quantized = {};
};

// The whole checkpoint as one component, names unchanged.
ComponentTable whole_checkpoint(std::string name, const Checkpoint& checkpoint);

// Tensors of a component that this program does not read, and why: "encoder." -> "text to video encodes no
// video".
struct IgnoreRule {
  std::string prefix;
  std::string reason;
};

struct Accounting {
  std::size_t bound = 0;  // parameters, each with its tensor; several groups may take rows of one
  Bytes bound_bytes = 0;  // with scales
  std::map<std::string, std::size_t> ignored;  // reason -> tensors
};

// Every parameter has a tensor of its shape (up to dimensions of size 1) in a dtype that can be computed
// with, or quantized and a place for its scales, and every tensor is used or ignored.  Else Error(mismatch /
// bad_input) that lists what is missing, unexpected or of another shape: names as they are in the file, at
// most ten of each, with counts.  Error(internal) where groups that take rows of one parameter do not take
// all of them, each once.
Accounting account(const ComponentTable& table, std::span<const ParameterGroup* const> groups,
                   std::span<const IgnoreRule> ignore = {});

}  // namespace sluice::weights
