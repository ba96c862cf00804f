#pragma once
// A box of a tensor as runs of bytes: where they lie in the source's file, and whether they keep their order
// in the target.  Arithmetic alone.

#include "bytes/plan/load_plan_state.h"

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::bytes {

// Elements from one index to the next, by dimension, of a row-major tensor.
std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape);

// The box's elements come in the target's own order, perhaps with others in between.
bool in_target_order(const Part& part);

// For elements smaller than a byte: every run begins and ends on whole bytes, in the source and in a target
// of this shape, whose dimensions are the source's.
bool runs_are_whole_bytes(const Part& part, std::span<const std::int64_t> target_shape);

// Contiguous runs of the box in its source; 0 for an empty box.
std::int64_t count_runs(const Part& part);

// Where the box ends in the file: behind its last byte; where its source begins if it is empty.
Bytes end_in_file(const Part& part);

// Appends the runs, in ascending order.
void append_ranges(const Part& part, std::size_t target, std::size_t number, std::vector<WantedRange>& to);

}  // namespace sluice::bytes
