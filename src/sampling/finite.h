#pragma once
// NaN and infinity are caught where they arise, not in the picture.

#include <ATen/core/Tensor.h>

#include <string_view>

namespace sluice::sampling {

// Error(non_finite) "<what>: 3 of 1024 values are not finite, the first nan at [0, 2, 7]" unless every value
// is a finite number.  `what` names tensor and step: "video latents after step 4".
void check_finite(const at::Tensor& values, std::string_view what);

}  // namespace sluice::sampling
