#pragma once
// Clips in overlapping tiles: where tiles lie, and how what they give is put together.  Numbers and blending
// only; what a tile is decoded with is the caller's business.
//
// Blending follows the reference (blend_v, blend_h, blend_t of AutoencoderKLLTX2Video, diffusers 0.42.1): a
// linear ramp, in place, so that what a tile blends with is itself blended already.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::ltx2 {

// Of one axis.  Tiles begin at 0, stride, 2 · stride, … < size and are cut off at the end.
struct TileAxis {
  std::int64_t tile = 0;    // latents
  std::int64_t stride = 0;  // latents; > 0

  std::int64_t overlap() const { return tile - stride; }
  std::int64_t count(std::int64_t size) const { return (size + stride - 1) / stride; }
  std::int64_t length(std::int64_t index, std::int64_t size) const {  // of that tile, once cut off
    return std::min(tile, size - index * stride);
  }
  bool operator==(const TileAxis&) const = default;
};

struct SpatialTiles {
  TileAxis height, width;

  // Whether that makes a difference: a clip within one tile is decoded whole.
  bool divide(std::int64_t h, std::int64_t w) const { return h > height.tile || w > width.tile; }
  bool operator==(const SpatialTiles&) const = default;
};

// `to` at its beginning becomes what `before` is at its end, over at most `extent` positions of `axis`.
void blend_into(at::Tensor& to, const at::Tensor& before, std::int64_t axis, std::int64_t extent);

// Where a tile lies: in latents.
struct TilePlace {
  std::int64_t row = 0, column = 0;  // of the grid
  std::int64_t top = 0, left = 0;
  std::int64_t height = 0, width = 0;
};

// Row by row, left to right.
std::vector<TilePlace> tile_places(const SpatialTiles& tiles, std::int64_t height, std::int64_t width);

// Puts together [batch, channels, frames, H, W], H and W = `ratio` pixels a latent, from tiles that `decode`
// gives in the order of tile_places().  Tiles are written to.  Besides the result two rows of tiles exist at
// most.
at::Tensor join_tiles(const std::vector<TilePlace>& places, const SpatialTiles& tiles, std::int64_t ratio,
                      const std::function<at::Tensor(const TilePlace&)>& decode);

// What join_tiles() holds beside the tile that is being decoded, elements a frame and channel.
std::int64_t joined_pixels(const std::vector<TilePlace>& places, std::int64_t ratio);

}  // namespace sluice::ltx2
