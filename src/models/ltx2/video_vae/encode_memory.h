#pragma once
// What encoding frames of a size takes at most beside the weights in their files, from shapes alone: the
// stream is gone through with blocks for tensors.  Beyond some pieces the length of the clip does not matter.

#include "models/ltx2/video_vae/encode_stream.h"

#include <sluice/units.h>

namespace sluice::ltx2 {

struct EncodePicture {
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  std::int64_t frames = 1;  // of the whole clip; fewer than a piece take less
};

// Bytes that are touched where tensors come from the memory pool: what the stream remembers, the frames of a
// piece, what a convolution works in, and the gaps between them.  Without frames and latents of the caller's.
Bytes encode_memory(const VideoEncoderConfig& config, const EncodePicture& picture, at::ScalarType compute,
                    EncodePiece piece = {});

}  // namespace sluice::ltx2
