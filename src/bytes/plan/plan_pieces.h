#pragma once
// A plan for an exact list of pieces of a checkpoint: what a reader needs that decided itself which bytes it
// wants, and asks for the same ones again and again.

#include <sluice/load.h>

#include <span>

namespace sluice::bytes {

// A piece is a run of bytes inside one tensor, described as a tensor by itself: the name of the tensor it
// comes from, shard, offset in the file, size, and the dtype and shape that it has as a target.  Target i is
// piece i. Error(internal) unless pieces are sorted by shard and offset, do not overlap and lie in their
// files.
LoadPlan plan_pieces(const Checkpoint& checkpoint, std::span<const TensorInfo> pieces);

}  // namespace sluice::bytes
