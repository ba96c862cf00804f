#include "models/ltx2/video_vae/tiling.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

TEST(Tiling, begins_a_tile_at_every_stride_and_cuts_the_last_ones_off) {
  const SpatialTiles tiles = {{.tile = 2, .stride = 1}, {.tile = 4, .stride = 3}};

  const auto places = tile_places(tiles, 2, 5);

  ASSERT_EQ(places.size(), 4u);
  EXPECT_EQ(places[0].height, 2);
  EXPECT_EQ(places[0].width, 4);
  EXPECT_EQ(places[1].left, 3);
  EXPECT_EQ(places[1].width, 2);
  EXPECT_EQ(places[2].top, 1);
  EXPECT_EQ(places[2].height, 1);
}

TEST(Tiling, blends_in_a_linear_ramp_that_begins_with_the_tile_before) {
  at::Tensor before = at::full({1, 4}, 8.0), to = at::zeros({1, 6});

  blend_into(to, before, 1, 4);

  EXPECT_TRUE(at::equal(to, at::tensor({8.0, 6.0, 4.0, 2.0, 0.0, 0.0}).view({1, 6})));
}

TEST(Tiling, blends_over_no_more_than_either_tile_has) {
  at::Tensor before = at::full({1, 2}, 4.0), to = at::zeros({1, 3});

  blend_into(to, before, 1, 4);

  EXPECT_TRUE(at::equal(to, at::tensor({4.0, 2.0, 0.0}).view({1, 3})));
}

// Where all tiles say the same, so does what they are joined to.
TEST(Tiling, joins_tiles_of_one_picture_to_that_picture) {
  const SpatialTiles tiles = {{.tile = 3, .stride = 2}, {.tile = 4, .stride = 1}};
  at::Tensor picture = at::arange(2 * 7 * 9, at::kFloat).view({1, 1, 2, 7, 9});

  at::Tensor joined = join_tiles(tile_places(tiles, 7, 9), tiles, 1, [&](const TilePlace& place) {
    return picture.narrow(3, place.top, place.height).narrow(4, place.left, place.width).clone();
  });

  EXPECT_TRUE(at::allclose(joined, picture, 1e-6, 0));
}

TEST(Tiling, keeps_a_row_of_tiles_and_one_more_beside_the_result) {
  const SpatialTiles tiles = {{.tile = 3, .stride = 2}, {.tile = 4, .stride = 3}};

  EXPECT_EQ(joined_pixels(tile_places(tiles, 5, 6), 2), 4 * (5 * 6 + 3 * (4 + 3) + 3 * 4));
}

}  // namespace
}  // namespace sluice::ltx2
