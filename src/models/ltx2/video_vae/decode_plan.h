#pragma once
// How a clip is decoded within a budget: decided here from shapes alone, carried out by decode_clip.h exactly
// as it stands.
//
//   stream   exact; memory does not depend on the clip's length
//   whole    exact; the clip at once
//   tiled    the reference's tiles in space and time with blending: changes the picture
//
// Where even single frames of a stream do not fit, the stream runs in spatial tiles one after another: exact
// over time, blended in space; frames of all tiles but the last wait in a file.

#include "models/ltx2/video_vae/decode_memory.h"
#include "models/ltx2/video_vae/tiling.h"

#include <optional>
#include <string>

namespace sluice::ltx2 {

enum class DecodeWay { automatic, stream, whole, tiled };

// Tiles of the reference, in pixels and frames, with its defaults.  Sides are rounded down to whole latents.
struct ReferenceTiling {
  std::int64_t tile_height = 512, stride_height = 448;
  std::int64_t tile_width = 512, stride_width = 448;
  std::int64_t tile_frames = 16, stride_frames = 8;
  bool in_space = true;
  bool in_time = true;
};

// In time the reference decodes `tile` + 1 latent frames from every `stride`-th on; it keeps `kept_frames` of
// each, one more of the first, and of the rest what it blends with.
struct TimeTiles {
  TileAxis axis;
  std::int64_t kept_frames = 0;
  std::int64_t blended_frames = 0;
};

struct DecodePlan {
  DecodeWay way = DecodeWay::stream;  // never automatic
  LatentClip clip;
  DecodeDtypes dtypes;
  PieceLimit pieces;                  // of the stream that decodes a clip or a tile
  std::optional<SpatialTiles> space;  // with `stream`: one after another, over the whole clip
  std::optional<TimeTiles> time;      // only with `tiled`
  std::int64_t memory = 0;  // bytes at most, beside the program, the weights in their file and the latents
  std::int64_t file_bytes = 0;  // of frames that wait in a file
  std::string reason;           // why so: one line, for a report
  std::string warning;          // why the picture is another than a whole decode's; empty: it is not

  bool exact() const { return warning.empty(); }
};

// `budget`: bytes for what DecodePlan::memory counts.  `automatic` streams, in tiles where it must.
// Error(does_not_fit) where nothing of the way asked for stays within it, with what would.
DecodePlan plan_decode(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                       DecodeWay way, std::int64_t budget, const ReferenceTiling& tiling = {});

}  // namespace sluice::ltx2
