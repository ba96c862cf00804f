#pragma once
// Streaming a checkpoint into a model that exists: the parameters' own memory takes the bytes.

#include "weights/named_tensors.h"

#include <sluice/load.h>
#include <sluice/sinks.h>

#include <span>

namespace sluice::weights {

// First everything is compared, exactly (a [1, 4] tensor does not spread over a [4, 4] parameter): all that
// is missing, unexpected or of another shape or dtype is listed in one Error(mismatch), and no byte has been
// written.  Error(usage) lists parameters that nothing can be read into: without memory, sparse, expanded,
// overlapping one another.
//
// Contiguous parameters of the host are read in place, by several threads; others are put together in host
// memory, one at a time, and those of a device go through pinned slots.  Nothing is recorded for gradients,
// whether they are required or not.  Names that share one parameter (tied) need one tensor between them; of
// several the bytes must agree, or Error(mismatch).  Nobody else may use the model meanwhile; after an error
// its contents are undefined.
LoadReport load_into_model(const LoadPlan& plan, std::span<const NamedTensor> parameters,
                           UnexpectedTensors unexpected = UnexpectedTensors::refuse,
                           const ReadOptions& options = {}, Progress* progress = nullptr,
                           const CancelToken* cancel = nullptr);

}  // namespace sluice::weights
