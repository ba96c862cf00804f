#include "models/ltx2/video_vae/tiling.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kRows = 3;  // axes of [batch, channels, frames, height, width]
constexpr std::int64_t kColumns = 4;

std::int64_t total_height(const std::vector<TilePlace>& places) {
  return places.back().top + places.back().height;
}

std::int64_t total_width(const std::vector<TilePlace>& places) {
  return places.back().left + places.back().width;
}

}  // namespace

void blend_into(at::Tensor& to, const at::Tensor& before, std::int64_t axis, std::int64_t extent) {
  extent = std::min({extent, to.size(axis), before.size(axis)});
  for (std::int64_t i = 0; i < extent; i++) {
    const double share = static_cast<double>(i) / static_cast<double>(extent);
    to.select(axis, i).mul_(share).add_(before.select(axis, before.size(axis) - extent + i), 1 - share);
  }
}

std::vector<TilePlace> tile_places(const SpatialTiles& tiles, std::int64_t height, std::int64_t width) {
  std::vector<TilePlace> places;
  for (std::int64_t row = 0; row < tiles.height.count(height); row++)
    for (std::int64_t column = 0; column < tiles.width.count(width); column++)
      places.push_back({.row = row,
                        .column = column,
                        .top = row * tiles.height.stride,
                        .left = column * tiles.width.stride,
                        .height = tiles.height.length(row, height),
                        .width = tiles.width.length(column, width)});
  return places;
}

at::Tensor join_tiles(const std::vector<TilePlace>& places, const SpatialTiles& tiles, std::int64_t ratio,
                      const std::function<at::Tensor(const TilePlace&)>& decode) {
  const std::int64_t height = total_height(places) * ratio, width = total_width(places) * ratio;
  at::Tensor out, left;
  std::map<std::int64_t, at::Tensor> above;  // by column: the last row's tiles, each until its place is taken
  for (const TilePlace& place : places) {
    at::Tensor tile = decode(place);
    if (!out.defined())
      out = at::empty({tile.size(0), tile.size(1), tile.size(2), height, width}, tile.options());
    if (place.row > 0) blend_into(tile, above.at(place.column), kRows, tiles.height.overlap() * ratio);
    if (place.column > 0) blend_into(tile, left, kColumns, tiles.width.overlap() * ratio);
    const std::int64_t rows = std::min(tile.size(kRows), tiles.height.stride * ratio);
    const std::int64_t columns = std::min(tile.size(kColumns), tiles.width.stride * ratio);
    out.narrow(kRows, place.top * ratio, rows)
        .narrow(kColumns, place.left * ratio, columns)
        .copy_(tile.narrow(kRows, 0, rows).narrow(kColumns, 0, columns));
    above[place.column] = tile;
    left = std::move(tile);
  }
  return out;
}

std::int64_t joined_pixels(const std::vector<TilePlace>& places, std::int64_t ratio) {
  std::int64_t row = 0;  // the first is the tallest
  for (const TilePlace& place : places)
    if (place.row == 0) row += place.height * place.width;
  const std::int64_t one_more = places.front().height * places.front().width;  // its place is not yet taken
  return ratio * ratio * (total_height(places) * total_width(places) + row + one_more);
}

}  // namespace sluice::ltx2
