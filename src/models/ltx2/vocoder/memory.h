#pragma once
// What the vocoder needs in memory, from shapes alone.

#include "models/ltx2/vocoder/config.h"

#include <cstdint>

namespace sluice::ltx2 {

// Bytes of the tensors that exist at once, at most, for one clip of so many mel frames: activations and,
// since everything is computed in f32, panels of packed weights of every thread.  Without the weights in
// their file.
std::int64_t vocoder_tensors(const VocoderConfig& config, std::int64_t mel_frames);

// With the gaps between them in the memory pool: anonymous memory.
std::int64_t vocoder_memory(const VocoderConfig& config, std::int64_t mel_frames);

}  // namespace sluice::ltx2
