#pragma once
// What a lease takes out of the files: for every parameter the run of bytes that its slot looks into, and for
// a quantized matrix the run of its scales.  Arithmetic on tables alone.

#include "base/nf4.h"
#include "weights/component.h"

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

namespace sluice::weights {

struct Piece {
  // Described as a tensor by itself: the name of the file's tensor, where the run lies in its shard, and the
  // dtype and shape of what the slot gets.
  TensorInfo bytes;
  at::Tensor* slot;
  bool widened = false;  // see is_widened_vector()
};

// In the order of the parameters, scales behind their values.  Error(internal) for a parameter that account()
// never saw, or whose rows cut a block of scales.
std::vector<Piece> pieces_of(const ComponentTable& table, const ParameterGroup& group);

// The tensor of a parameter; Error(internal) if it was never accounted for.
const TensorInfo& tensor_of(const ComponentTable& table, const Parameter& parameter);
const QuantizedTensor* quantized_of(const ComponentTable& table,
                                    const Parameter& parameter);  // nullptr: dense

// A vector of fp8 without a scale, as files have it that were cast as a whole: it is lent as BF16, which
// holds every value of fp8.
bool is_widened_vector(const ComponentTable& table, const Parameter& parameter);

// The rows that the parameter takes, with the count of all rows spelt out.  A shape without dimensions is one
// row.
RowRange rows_of(const Parameter& parameter);

// Whether these rows of a matrix in nf4 are whole blocks of its scales; the last block may be short.
bool rows_are_whole_blocks(const Parameter& parameter);

inline constexpr auto kNf4Block = static_cast<std::int64_t>(kNf4BlockValues);

// Reads single rows of a dense table, each once, however often it is asked for: [ids, columns…], in the
// file's dtype.  Error(bad_input) for a quantized table, Error(internal) for rows that it does not have.
struct RowsRead {
  at::Tensor rows;
  Bytes bytes = 0;  // of the file
};
RowsRead read_rows(const ComponentTable& table, const Parameter& parameter,
                   std::span<const std::int64_t> ids);

}  // namespace sluice::weights
