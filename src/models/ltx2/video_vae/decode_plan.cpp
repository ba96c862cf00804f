#include "models/ltx2/video_vae/decode_plan.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace sluice::ltx2 {
namespace {

// Tiles of a stream overlap by so many latents: beyond 4 on either side little of what a pixel depends on is
// left in a trained decoder.  Tiles below twice the overlap would mostly blend.
constexpr std::int64_t kOverlap = 4;
constexpr std::int64_t kLeastTile = 2 * kOverlap;

// What no tensor holds: weights on their way into panels, on each thread, and biases.
constexpr std::int64_t kBesideTensors = std::int64_t{1} << 20;

std::string size_text(std::int64_t bytes) {
  return format_bytes(static_cast<Bytes>(std::max<std::int64_t>(bytes, 0)));
}

// One question: this clip in this decoder within this budget.
class Planner {
 public:
  Planner(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes, std::int64_t budget)
      : config_(config), clip_(clip), dtypes_(dtypes), budget_(budget) {}

  DecodePlan automatic() const;
  DecodePlan stream() const;
  DecodePlan whole(std::string reason) const;
  DecodePlan tiled(const ReferenceTiling& tiling) const;

 private:
  DecodePlan blank(DecodeWay way) const { return {.way = way, .clip = clip_, .dtypes = dtypes_}; }
  std::int64_t pixel_bytes(std::int64_t pixels) const {  // of decoded frames, in the compute dtype
    return clip_.batch * config_.out_channels * pixels *
           static_cast<std::int64_t>(c10::elementSize(dtypes_.compute));
  }
  std::int64_t frame_in_f32() const {  // the one that is handed on
    const std::int64_t ratio = config_.spatial_ratio();
    return config_.out_channels * clip_.height * clip_.width * ratio * ratio * 4;
  }
  std::int64_t frames() const { return config_.temporal_ratio() * (clip_.frames - 1) + 1; }
  LatentClip tile_clip(const SpatialTiles& tiles) const;  // the largest tile
  bool fit(DecodePlan& plan, const LatentClip& decoded, std::int64_t beside) const;

  bool fit_stream(DecodePlan& plan) const;
  std::optional<DecodePlan> stream_tiles() const;
  DecodePlan in_tiles(const SpatialTiles& grid) const;
  std::vector<SpatialTiles> divisions() const;
  std::int64_t held_by_tiles(const DecodePlan& plan) const;
  Error refusal(const DecodePlan& least, const std::string& what) const;
  std::string what_fits() const;

  const VideoVaeConfig& config_;
  const LatentClip& clip_;
  DecodeDtypes dtypes_;
  std::int64_t budget_;
};

LatentClip Planner::tile_clip(const SpatialTiles& tiles) const {
  LatentClip tile = clip_;
  tile.height = std::min(clip_.height, tiles.height.tile);
  tile.width = std::min(clip_.width, tiles.width.tile);
  return tile;
}

// The largest pieces with which decoding `decoded` leaves room for `beside`.
bool Planner::fit(DecodePlan& plan, const LatentClip& decoded, std::int64_t beside) const {
  for (const PieceLimit& limit : piece_limits()) {
    plan.pieces = limit;
    plan.memory = video_decode_memory(config_, decoded, dtypes_, limit) + kBesideTensors + beside;
    if (plan.memory <= budget_) return true;
  }
  return false;
}

bool Planner::fit_stream(DecodePlan& plan) const {
  if (!fit(plan, clip_, frame_in_f32())) return false;
  plan.reason = plan.pieces.bytes == PieceLimit{}.bytes
                    ? "exact, whatever the clip's length"
                    : fmt::format("exact, in pieces of {} to stay within {}", size_text(plan.pieces.bytes),
                                  size_text(budget_));
  return true;
}

// Grids of equal tiles, few tiles first.
std::vector<SpatialTiles> Planner::divisions() const {
  auto axis = [](std::int64_t size, std::int64_t count) {
    if (count == 1) return TileAxis{.tile = size, .stride = size};
    const std::int64_t stride = (size + count - 1) / count;
    return TileAxis{.tile = stride + kOverlap, .stride = stride};
  };
  std::vector<SpatialTiles> grids;
  for (std::int64_t rows = 1; rows == 1 || axis(clip_.height, rows).tile >= kLeastTile; rows++)
    for (std::int64_t columns = 1; columns == 1 || axis(clip_.width, columns).tile >= kLeastTile; columns++)
      grids.push_back({axis(clip_.height, rows), axis(clip_.width, columns)});
  auto tiles = [&](const SpatialTiles& grid) {
    return grid.height.count(clip_.height) * grid.width.count(clip_.width);
  };
  auto edge = [&](const SpatialTiles& grid) { return grid.height.tile + grid.width.tile; };
  std::stable_sort(grids.begin(), grids.end(), [&](const SpatialTiles& a, const SpatialTiles& b) {
    return std::pair(tiles(a), edge(a)) < std::pair(tiles(b), edge(b));
  });
  grids.erase(grids.begin());  // one tile: no division
  return grids;
}

// The last tile's stream is still there when frames are put together, one at a time.
DecodePlan Planner::in_tiles(const SpatialTiles& grid) const {
  const auto places = tile_places(grid, clip_.height, clip_.width);
  const std::int64_t ratio = config_.spatial_ratio();
  DecodePlan plan = blank(DecodeWay::stream);
  plan.space = grid;
  for (std::size_t i = 0; i + 1 < places.size(); i++)
    plan.file_bytes += pixel_bytes(places[i].height * places[i].width * ratio * ratio) * frames();
  plan.reason = fmt::format("not even single frames of the whole picture stay within {}", size_text(budget_));
  plan.warning = fmt::format(
      "the picture is decoded in {} x {} tiles of {} x {} pixels whose overlap is blended, which changes it "
      "slightly: the decoder's state for all of it does not fit {}",
      grid.width.count(clip_.width), grid.height.count(clip_.height),
      std::min(grid.width.tile, clip_.width) * ratio, std::min(grid.height.tile, clip_.height) * ratio,
      size_text(budget_));
  fit(plan, tile_clip(grid), frame_in_f32() + pixel_bytes(joined_pixels(places, ratio)));
  return plan;
}

// The fewest tiles that fit; else the smallest.  Nothing for a picture too small to divide.
std::optional<DecodePlan> Planner::stream_tiles() const {
  const std::vector<SpatialTiles> grids = divisions();
  for (const SpatialTiles& grid : grids) {
    const LatentClip tile = tile_clip(grid);
    if (video_decode_state(config_, tile, dtypes_.compute) > budget_) continue;  // sooner said than counted
    if (video_decode_memory(config_, tile, dtypes_, {.bytes = 0}) > budget_) continue;
    DecodePlan plan = in_tiles(grid);
    if (plan.memory <= budget_) return plan;
  }
  return grids.empty() ? std::nullopt : std::optional(in_tiles(grids.back()));
}

DecodePlan Planner::stream() const {
  DecodePlan plan = blank(DecodeWay::stream);
  if (fit_stream(plan)) return plan;
  throw refusal(plan, "even frame by frame");
}

DecodePlan Planner::automatic() const {
  DecodePlan plan = blank(DecodeWay::stream);
  if (fit_stream(plan)) return plan;
  const std::optional<DecodePlan> tiles = stream_tiles();
  if (!tiles) throw refusal(plan, "even frame by frame");
  if (tiles->memory <= budget_) return *tiles;
  throw refusal(*tiles, fmt::format("even frame by frame in tiles of {} x {} latents",
                                    tiles->space->width.tile, tiles->space->height.tile));
}

DecodePlan Planner::whole(std::string reason) const {
  DecodePlan plan = blank(DecodeWay::whole);
  plan.pieces = PieceLimit::none();
  plan.memory = video_decode_memory(config_, clip_, dtypes_, plan.pieces) + kBesideTensors + frame_in_f32();
  plan.reason = std::move(reason);
  if (plan.memory <= budget_) return plan;
  throw refusal(plan, "at once");
}

// Beside the tile that is decoded: the tiles of a row, the frames they make, and those that the next tile in
// time blends with.
std::int64_t Planner::held_by_tiles(const DecodePlan& plan) const {
  const std::int64_t ratio = config_.spatial_ratio();
  const std::int64_t area = clip_.height * clip_.width * ratio * ratio;
  const std::int64_t latents = plan.time ? std::min(plan.time->axis.tile + 1, clip_.frames) : clip_.frames;
  const std::int64_t tile_frames = config_.temporal_ratio() * (latents - 1) + 1;
  const std::int64_t joined =
      plan.space ? joined_pixels(tile_places(*plan.space, clip_.height, clip_.width), ratio) : area;
  const std::int64_t before = plan.time ? std::min(plan.time->blended_frames, tile_frames) * area : 0;
  return pixel_bytes(joined * tile_frames + before) + frame_in_f32();
}

DecodePlan Planner::tiled(const ReferenceTiling& tiling) const {
  auto axis = [](std::int64_t tile, std::int64_t stride, std::int64_t ratio) {
    return TileAxis{.tile = std::max<std::int64_t>(tile / ratio, 1),
                    .stride = std::max<std::int64_t>(stride / ratio, 1)};
  };
  DecodePlan plan = blank(DecodeWay::tiled);
  const std::int64_t ratio = config_.spatial_ratio();
  const SpatialTiles space = {axis(tiling.tile_height, tiling.stride_height, ratio),
                              axis(tiling.tile_width, tiling.stride_width, ratio)};
  if (tiling.in_space && space.divide(clip_.height, clip_.width)) plan.space = space;
  const TimeTiles time = {axis(tiling.tile_frames, tiling.stride_frames, config_.temporal_ratio()),
                          tiling.stride_frames, tiling.tile_frames - tiling.stride_frames};
  if (tiling.in_time && clip_.frames > time.axis.tile) plan.time = time;
  if (!plan.space && !plan.time) return whole("the clip is no larger than a tile: decoded at once");

  plan.reason = "asked for";
  plan.warning = "tiles of the reference are blended: the picture is another than that of a whole decode";
  LatentClip tile = plan.space ? tile_clip(space) : clip_;
  if (plan.time) tile.frames = std::min(clip_.frames, time.axis.tile + 1);
  if (fit(plan, tile, held_by_tiles(plan))) return plan;
  throw refusal(plan, "in tiles, even frame by frame");
}

// The remedy: a way that fits, with its bytes, or what else to change.
std::string Planner::what_fits() const {
  DecodePlan plan = blank(DecodeWay::stream);
  if (fit_stream(plan)) return fmt::format("--decode stream (needs {})", size_text(plan.memory));
  if (const auto tiles = stream_tiles(); tiles && tiles->memory <= budget_)
    return fmt::format("--decode auto (needs {})", size_text(tiles->memory));
  return dtypes_.compute == at::kFloat
             ? "a larger --memory-limit, or a smaller picture or --compute-dtype bf16 in a run of its own"
             : "a larger --memory-limit, or a smaller picture in a run of its own";
}

Error Planner::refusal(const DecodePlan& least, const std::string& what) const {
  return Error(ErrorKind::does_not_fit,
               fmt::format("decoding {} x {} x {} latents {} takes {}, {} are left", clip_.width,
                           clip_.height, clip_.frames, what, size_text(least.memory), size_text(budget_)),
               what_fits());
}

}  // namespace

DecodePlan plan_decode(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                       DecodeWay way, std::int64_t budget, const ReferenceTiling& tiling) {
  const Planner planner(config, clip, dtypes, budget);
  switch (way) {
    case DecodeWay::automatic:
      return planner.automatic();
    case DecodeWay::stream:
      return planner.stream();
    case DecodeWay::whole:
      return planner.whole("asked for");
    case DecodeWay::tiled:
      return planner.tiled(tiling);
  }
  throw Error(ErrorKind::internal, "a way of decoding that does not exist");
}

}  // namespace sluice::ltx2
