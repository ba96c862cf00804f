#pragma once
// The loops of quantizing over all workers.  Each checks what it reads: Error(non_finite) names file, tensor
// and element.

#include "weights/quantize/workers.h"

#include <sluice/load.h>

#include <cstdint>
#include <span>
#include <string>

namespace sluice::weights {

// Which values these are, for messages.
struct ValuesOf {
  const Checkpoint& checkpoint;
  const TargetTensor& tensor;
  std::size_t first = 0;  // element of the tensor
};

// The largest magnitude of the values; what they are copied to, if anywhere, has their size.
float largest_of(Workers& workers, const ValuesOf& of, std::span<const std::byte> values,
                 std::span<std::byte> copy = {});

void encode_f8_e4m3(Workers& workers, Dtype dtype, std::span<const std::byte> values, float scale,
                    std::span<std::byte> codes);

// As encode_nf4(); `of.first` is a multiple of a block's values.
void encode_nf4(Workers& workers, const ValuesOf& of, std::span<const std::byte> values,
                std::span<float> absmax, std::span<std::byte> codes);

}  // namespace sluice::weights
