#pragma once
// The projections from a text encoder's states to the connectors' widths: one or two matrices of 188,160
// columns, 2.3 GB in bf16 at the published sizes.  They are leased tile by tile of rows, so that they are
// never in memory whole.

#include "models/ltx2/connectors/connectors_config.h"
#include "nn/layers.h"
#include "weights/parameters.h"

#include <sluice/units.h>

#include <cstdint>
#include <vector>

namespace sluice::ltx2 {

struct ProjectionTile {
  std::int64_t begin = 0;  // first row
  nn::Linear rows;
  weights::ParameterGroup group;
};

struct TextProjection {
  std::int64_t out = 0;  // 0: there is none
  std::vector<ProjectionTile> tiles;
};

// Of a tile in a bf16 file: large enough that reading it takes many requests of the disk, and two of them
// (one is read while the other is computed with) are less than what a layer of the text encoder takes.
inline constexpr Bytes kProjectionTile = MiB(64);

struct TextProjections {
  explicit TextProjections(const ConnectorsConfig& config, Bytes tile = kProjectionTile);
  TextProjections(const TextProjections&) = delete;  // the groups hold addresses of the slots
  TextProjections& operator=(const TextProjections&) = delete;

  std::vector<const weights::ParameterGroup*> groups() const;  // in the order in which they are leased

  ConnectorsConfig config;
  TextProjection video, audio;  // no audio where one projection serves both streams
};

// Rows of each tile but the last: multiples of 16 where a tile holds as many, all nearly alike.
std::int64_t projection_tile_rows(std::int64_t in, std::int64_t out, Bytes tile);

}  // namespace sluice::ltx2
