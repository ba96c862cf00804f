#include "models/ltx2/video_vae/decode_plan.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <limits>

namespace sluice::ltx2 {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr DecodeDtypes kF32 = {.compute = at::kFloat, .weights = at::kFloat};

// The published decoder's widths.
VideoVaeConfig published() {
  nlohmann::json json = test::Fixture("video_vae/decode_f1").config();
  json["latent_channels"] = 128;
  json["decoder_block_out_channels"] = {256, 512, 512, 1024};
  json["decoder_layers_per_block"] = {4, 6, 4, 2, 2};
  return VideoVaeConfig::parse(json);
}

constexpr LatentClip kClip = {.frames = 16, .height = 16, .width = 24};  // 768 x 512 x 121

DecodePlan plan(DecodeWay way, std::int64_t budget, const LatentClip& clip = kClip) {
  return plan_decode(published(), clip, {}, way, budget);
}

std::string refusal(DecodeWay way, std::int64_t budget, const LatentClip& clip = kClip) {
  try {
    plan(way, budget, clip);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    return error.what() + std::string(" / ") + error.hint();
  }
  return "accepted";
}

TEST(DecodePlan, streams_exactly_by_default) {
  const DecodePlan got = plan(DecodeWay::automatic, kNoLimit);

  EXPECT_EQ(got.way, DecodeWay::stream);
  EXPECT_FALSE(got.space || got.time);
  EXPECT_TRUE(got.exact());
  EXPECT_EQ(got.pieces.bytes, PieceLimit{}.bytes);
}

TEST(DecodePlan, takes_smaller_pieces_before_anything_that_changes_the_picture) {
  const LatentClip clip = {.frames = 16, .height = 5, .width = 8};
  const std::int64_t budget = plan(DecodeWay::stream, kNoLimit, clip).memory - 1;

  const DecodePlan got = plan(DecodeWay::automatic, budget, clip);

  EXPECT_TRUE(got.exact());
  EXPECT_LT(got.pieces.bytes, PieceLimit{}.bytes);
  EXPECT_LE(got.memory, budget);
  EXPECT_THAT(got.reason, HasSubstr("in pieces of"));
}

TEST(DecodePlan, divides_the_picture_with_a_warning_where_single_frames_do_not_fit) {
  const std::int64_t budget = plan(DecodeWay::stream, kNoLimit).memory / 2;

  const DecodePlan got = plan(DecodeWay::automatic, budget);

  ASSERT_TRUE(got.space);
  EXPECT_EQ(got.way, DecodeWay::stream);
  EXPECT_LE(got.memory, budget);
  EXPECT_GE(got.space->width.overlap() + got.space->height.overlap(), 4);
  EXPECT_GT(got.file_bytes, 0);
  EXPECT_THAT(got.warning, HasSubstr("changes it slightly"));
}

TEST(DecodePlan, does_not_need_more_for_a_longer_clip_but_whole) {
  LatentClip longer = kClip;
  longer.frames = 64;
  LatentClip long_one = kClip;
  long_one.frames = 32;
  for (DecodeWay way : {DecodeWay::stream, DecodeWay::tiled})
    EXPECT_LE(plan(way, kNoLimit, longer).memory, plan(way, kNoLimit, long_one).memory * 101 / 100);

  EXPECT_GT(plan(DecodeWay::whole, kNoLimit, longer).memory, 3 * plan(DecodeWay::whole, kNoLimit).memory);
}

TEST(DecodePlan, refuses_a_stream_that_does_not_fit_and_names_what_does) {
  const std::int64_t budget = plan(DecodeWay::stream, kNoLimit).memory / 2;

  const std::string text = refusal(DecodeWay::stream, budget);

  EXPECT_THAT(text, HasSubstr("decoding 24 x 16 x 16 latents even frame by frame takes"));
  EXPECT_THAT(text, HasSubstr("--decode auto (needs"));
}

TEST(DecodePlan, refuses_a_whole_decode_that_does_not_fit_and_names_the_stream) {
  const std::int64_t budget = plan(DecodeWay::stream, kNoLimit).memory;

  EXPECT_THAT(refusal(DecodeWay::whole, budget), HasSubstr("--decode stream (needs"));
  EXPECT_THAT(refusal(DecodeWay::whole, budget), HasSubstr("at once takes"));
}

TEST(DecodePlan, refuses_what_not_even_small_tiles_fit_with_both_numbers) {
  const std::string text = refusal(DecodeWay::automatic, std::int64_t{32} << 20);

  EXPECT_THAT(text, HasSubstr("in tiles of 8 x 8 latents takes"));
  EXPECT_THAT(text, HasSubstr("32.0 MiB are left"));
  EXPECT_THAT(text, HasSubstr("a larger --memory-limit"));
}

TEST(DecodePlan, tiles_as_the_reference_does_when_asked_and_warns) {
  const DecodePlan got = plan(DecodeWay::tiled, kNoLimit);

  ASSERT_TRUE(got.space && got.time);
  EXPECT_EQ(*got.space, (SpatialTiles{{.tile = 16, .stride = 14}, {.tile = 16, .stride = 14}}));
  EXPECT_EQ(got.time->axis, (TileAxis{.tile = 2, .stride = 1}));
  EXPECT_EQ(got.time->kept_frames, 8);
  EXPECT_EQ(got.time->blended_frames, 8);
  EXPECT_FALSE(got.exact());
}

// A tile that is longer and wider than the clip.
TEST(DecodePlan, treats_and_counts_a_clip_within_one_tile_as_a_whole_decode) {
  const LatentClip small = {.frames = 2, .height = 16, .width = 16};

  const DecodePlan tiled = plan(DecodeWay::tiled, kNoLimit, small);

  EXPECT_EQ(tiled.way, DecodeWay::whole);
  EXPECT_EQ(tiled.memory, plan(DecodeWay::whole, kNoLimit, small).memory);
  EXPECT_THAT(tiled.warning, IsEmpty());
  EXPECT_THAT(refusal(DecodeWay::tiled, tiled.memory - 1, small), HasSubstr("at once takes"));
}

TEST(DecodePlan, never_goes_over_a_budget_that_it_accepts) {
  const std::int64_t most = plan(DecodeWay::stream, kNoLimit).memory;
  for (DecodeWay way : {DecodeWay::automatic, DecodeWay::stream, DecodeWay::tiled})
    for (std::int64_t part : {2, 5, 8, 11}) {
      const std::int64_t budget = most * part / 10;
      try {
        EXPECT_LE(plan(way, budget).memory, budget);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
      }
    }
}

}  // namespace
}  // namespace sluice::ltx2
