#pragma once
// What encoding frames of a size takes at most beside the weights in their files, from shapes alone; the
// length of the clip does not matter beyond a piece.

#include "models/ltx2/video_vae/encode_stream.h"

#include <sluice/units.h>

namespace sluice::ltx2 {

struct EncodePicture {
  std::int64_t height = 0;  // pixels
  std::int64_t width = 0;
  std::int64_t frames = 1;  // of the whole clip; fewer than a piece take less
};

Bytes encode_memory(const VideoEncoderConfig& config, const EncodePicture& picture, at::ScalarType compute,
                    EncodePiece piece = {});

}  // namespace sluice::ltx2
