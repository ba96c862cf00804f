#pragma once
// How adapters are multiplied (aten/low_rank.h): factor · (x · downᵀ) is computed first, a few values a
// token, and is then one more part of x in the layer's own product, with `up` as the further columns of W. So
// y is gone through once, and an adapter costs the share that its rank has of the layer's width.
//
// In f32 nothing is rounded on the way.  In bf16 factor · (x · downᵀ) is rounded once, as the inputs of every
// product are.

#include "aten/low_rank.h"
#include "kernels/packed_product.h"
#include "kernels/workspace.h"

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::kernels {

// x: [..., in] as packed_product() takes it.  The factors that are added up with those of x itself: tensors
// of the workspace, in the caller's scope.
std::vector<Factors> low_rank_factors(const at::Tensor& x, std::span<const LowRank> adapters,
                                      Workspace& workspace);

// What adapters of these ranks take from the workspace beside a product of so many tokens, which takes
// product_scratch() with them as without.
Bytes low_rank_scratch(std::int64_t tokens, std::span<const std::int64_t> ranks, at::ScalarType dtype);

}  // namespace sluice::kernels
