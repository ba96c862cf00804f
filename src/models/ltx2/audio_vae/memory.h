#pragma once
// What decoding sound latents needs in memory, from shapes alone.

#include "models/ltx2/audio_vae/config.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

// Anonymous memory, at most, for one clip of so many latents: activations, packed weights and inputs with
// zeros around them, gaps between them in the memory pool.
std::int64_t audio_decode_memory(const AudioVaeConfig& config, std::int64_t latents, at::ScalarType compute);

}  // namespace sluice::ltx2
