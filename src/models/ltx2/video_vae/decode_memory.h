#pragma once
// What decoding a clip needs in memory, from shapes alone: the stream is gone through with the same pieces in
// the same order, counting bytes where it would make tensors.  Beyond some length (the layers' reach, 27
// latent frames in the published decoder) a clip needs no more than a shorter one.

#include "models/ltx2/video_vae/config.h"
#include "models/ltx2/video_vae/decode_stream.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct LatentClip {
  std::int64_t batch = 1;
  std::int64_t frames = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
};

struct DecodeDtypes {
  at::ScalarType compute = at::kBFloat16;
  at::ScalarType weights = at::kBFloat16;  // as the file has them
};

// Bytes that a decode of a clip pushed at once touches, at most, where tensors come from the memory pool:
// what the stream remembers, pieces in flight, what a convolution works in, and the gaps between them.
// Without the latents, the weights themselves (with a mapping they are the page cache's) and frames that the
// sink keeps.
std::int64_t video_decode_memory(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                                 PieceLimit limit = {});

// The tensors that exist at once, without gaps.
std::int64_t video_decode_tensors(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                                  PieceLimit limit = {});

// Of that, what the stream remembers between pieces, once a clip runs.
std::int64_t video_decode_state(const VideoVaeConfig& config, const LatentClip& clip, at::ScalarType compute);

// What is tried, the largest first: each one goes through the whole stream.
std::vector<PieceLimit> piece_limits();

// The largest pieces, up to the default, with which decoding stays within `budget` bytes.  Where not even
// single frames do: Error(does_not_fit) with both numbers.
PieceLimit fit_pieces(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                      std::int64_t budget);

}  // namespace sluice::ltx2
