#include "models/ltx2/connectors/text_projections.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

void declare_tiles(TextProjection& projection, const std::string& name, const nn::LinearShape& whole,
                   Bytes tile) {
  projection.out = whole.out;
  const std::int64_t rows = projection_tile_rows(whole.in, whole.out, tile);
  projection.tiles.resize(static_cast<std::size_t>((whole.out + rows - 1) / rows));
  for (std::size_t i = 0; i < projection.tiles.size(); ++i) {
    ProjectionTile& part = projection.tiles[i];
    part.begin = static_cast<std::int64_t>(i) * rows;
    part.group.name = fmt::format("{}.{}", name, i);
    nn::LinearShape shape = whole;
    shape.rows = {.begin = part.begin, .count = std::min(rows, whole.out - part.begin)};
    nn::declare(weights::ParameterScope(part.group, name), part.rows, shape);
  }
}

}  // namespace

std::int64_t projection_tile_rows(std::int64_t in, std::int64_t out, Bytes tile) {
  constexpr std::int64_t kBf16 = 2, kTogether = 16;
  const std::int64_t most = std::clamp<std::int64_t>(static_cast<std::int64_t>(tile) / (in * kBf16), 1, out);
  const std::int64_t tiles = (out + most - 1) / most;
  const std::int64_t rows = (out + tiles - 1) / tiles;
  return rows < kTogether ? rows : std::min((rows + kTogether - 1) / kTogether * kTogether, out);
}

TextProjections::TextProjections(const ConnectorsConfig& from, Bytes tile) : config(from) {
  const nn::Bias bias = config.proj_bias ? nn::Bias::yes : nn::Bias::no;
  const std::int64_t in = config.feature_columns();
  if (config.per_modality_projections) {
    declare_tiles(video, "video_text_proj_in", {.in = in, .out = config.video.width(), .bias = bias}, tile);
    declare_tiles(audio, "audio_text_proj_in", {.in = in, .out = config.audio.width(), .bias = bias}, tile);
  } else {
    declare_tiles(video, "text_proj_in", {.in = in, .out = config.caption_channels, .bias = bias}, tile);
  }
}

std::vector<const weights::ParameterGroup*> TextProjections::groups() const {
  std::vector<const weights::ParameterGroup*> all;
  for (const TextProjection* projection : {&video, &audio}) {
    for (const ProjectionTile& tile : projection->tiles) all.push_back(&tile.group);
  }
  return all;
}

}  // namespace sluice::ltx2
