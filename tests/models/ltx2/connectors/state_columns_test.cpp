#include "models/ltx2/connectors/state_columns.h"

#include "models/ltx2/connectors/text_projections.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using ::testing::ElementsAre;

ConnectorsConfig published() {
  ConnectorsConfig config;
  config.caption_channels = 3840;
  config.text_proj_in_factor = 49;
  config.video = {.num_attention_heads = 32, .attention_head_dim = 128};
  config.audio = {.num_attention_heads = 32, .attention_head_dim = 64};
  config.per_modality_projections = true;
  return config;
}

TEST(StateShares, hold_all_states_of_short_prompts_and_read_the_projections_once) {
  const StateShares plan = plan_shares(published(), 350, at::kFloat, {});

  EXPECT_EQ(plan.share, 7);
  EXPECT_EQ(plan.held, 7);
  EXPECT_EQ(plan.passes, 1);
  EXPECT_EQ(plan.held_bytes, 350u * 3840 * 49 * 4);
}

TEST(StateShares, of_long_prompts_are_held_in_equal_parts_within_the_limit) {
  const StateShares plan = plan_shares(published(), 1024, at::kFloat, {});

  EXPECT_EQ(plan.held, 2);
  EXPECT_EQ(plan.passes, 4);
  EXPECT_LE(plan.held_bytes, MiB(256));
  EXPECT_EQ(plan_shares(published(), 1024, at::kBFloat16, {}).passes, 2);
}

TEST(StateShares, are_the_same_shares_whatever_is_held) {
  for (Bytes held : {Bytes(1), MiB(300), GiB(2)}) {
    const StateShares plan = plan_shares(published(), 1024, at::kFloat, {.held_states = held});

    EXPECT_EQ(plan.share, 7) << held;
    EXPECT_GE(plan.held, 1) << held;
    EXPECT_GE(plan.held * plan.passes, plan.shares) << held;
  }
}

TEST(StateShares, take_every_column_to_its_state) {
  ConnectorsConfig config;
  config.caption_channels = 5;
  config.text_proj_in_factor = 17;  // shares of three, the last of two
  const StateShares plan = plan_shares(config, 4, at::kFloat, {});
  for (at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor rows = at::arange(3 * 85, at::kFloat).to(dtype).view({3, 85});
    at::Tensor memory = at::empty({3 * 85}, at::TensorOptions().dtype(dtype));

    const std::vector<at::Tensor> shares = split_columns(rows, plan, 2, 4, memory);

    ASSERT_EQ(shares.size(), 4u);
    EXPECT_EQ(plan.states_of(5), 2);
    for (std::int64_t i = 0; i < 4; ++i) {
      const at::Tensor want = rows.view({3, 5, 17}).narrow(2, 3 * (i + 2), plan.states_of(i + 2)).flatten(1);
      EXPECT_TRUE(at::equal(shares[static_cast<std::size_t>(i)], want)) << i;
    }
  }
}

TEST(ProjectionTiles, cover_every_row_once_in_pieces_of_about_64_MiB) {
  const TextProjections projections(published());

  for (const TextProjection* projection : {&projections.video, &projections.audio}) {
    std::int64_t next = 0;
    for (const ProjectionTile& tile : projection->tiles) {
      EXPECT_EQ(tile.begin, next);
      const auto bytes = static_cast<Bytes>(tile.rows.out * tile.rows.in * 2);
      EXPECT_LE(bytes, MiB(66));
      next += tile.rows.out;
    }
    EXPECT_EQ(next, projection->out);
  }
  EXPECT_EQ(projections.video.tiles.size(), 24u);
  EXPECT_EQ(projections.audio.tiles.size(), 12u);
}

TEST(ProjectionTiles, are_single_rows_at_the_least) {
  EXPECT_EQ(projection_tile_rows(1000, 40, 1), 1);
  EXPECT_EQ(projection_tile_rows(1000, 40, MiB(1)), 40);
  EXPECT_THAT(
      std::vector({projection_tile_rows(188160, 4096, MiB(64)), projection_tile_rows(188160, 2048, MiB(64))}),
      ElementsAre(176, 176));
}

}  // namespace
}  // namespace sluice::ltx2
