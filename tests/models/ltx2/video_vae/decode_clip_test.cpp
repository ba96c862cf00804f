#include "models/ltx2/video_vae/decode_clip.h"

#include "models/ltx2/video_vae/small_decoder.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <limits>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr DecodeDtypes kF32 = {.compute = at::kFloat, .weights = at::kFloat};

LatentClip clip_of(const at::Tensor& latents) {
  return {.batch = latents.size(0),
          .frames = latents.size(2),
          .height = latents.size(3),
          .width = latents.size(4)};
}

struct Decoded {
  at::Tensor frames;
  std::vector<std::int64_t> pieces;  // frames handed on at once
};

Decoded decode(SmallDecoder& small, const at::Tensor& latents, const DecodePlan& plan) {
  Decoded got;
  std::vector<at::Tensor> pieces;
  decode_clip(
      small.decoder, small.source, latents, plan,
      [&](const at::Tensor& frames) {
        got.pieces.push_back(frames.size(2));
        pieces.push_back(frames.clone());
      },
      std::filesystem::temp_directory_path());
  got.frames = at::cat(pieces, 2);
  return got;
}

DecodePlan plan_for(SmallDecoder& small, const at::Tensor& latents, DecodeWay way,
                    const ReferenceTiling& tiling = {}) {
  return plan_decode(small.decoder.config(), clip_of(latents), kF32, way, kNoLimit, tiling);
}

// A stream in tiles of so many latents.
DecodePlan tiled_stream(SmallDecoder& small, const at::Tensor& latents, SpatialTiles tiles) {
  DecodePlan plan = plan_for(small, latents, DecodeWay::stream);
  plan.space = tiles;
  plan.pieces = {.frames = 3};
  return plan;
}

TEST(DecodeClip, gives_the_whole_clips_frames_for_every_length_from_9_to_121) {
  SmallDecoder small;
  for (std::int64_t latent_frames = 2; latent_frames <= 16; latent_frames++) {
    at::Tensor latents = random_latents(latent_frames, 1, 2);

    at::Tensor streamed = decode(small, latents, plan_for(small, latents, DecodeWay::automatic)).frames;
    DecodePlan in_pieces = plan_for(small, latents, DecodeWay::stream);
    in_pieces.pieces = {.frames = 1 + latent_frames % 4};
    at::Tensor cut = decode(small, latents, in_pieces).frames;
    at::Tensor whole = decode(small, latents, plan_for(small, latents, DecodeWay::whole)).frames;

    ASSERT_EQ(whole.size(2), 8 * latent_frames - 7);
    EXPECT_LE(test::error_of_max(streamed, whole), 1e-5) << 8 * latent_frames - 7 << " frames";
    EXPECT_LE(test::error_of_max(cut, whole), 1e-5) << 8 * latent_frames - 7 << " frames";
  }
}

// Where tiles would border, the default's error is rounding as everywhere.
TEST(DecodeClip, has_no_seams_by_default) {
  SmallDecoder small;
  at::Tensor latents = random_latents(3, 3, 18);

  at::Tensor whole = small.whole(latents);
  at::Tensor error =
      (decode(small, latents, plan_for(small, latents, DecodeWay::automatic)).frames - whole).abs();

  const double most = whole.abs().max().item<double>();
  EXPECT_LE(error.max().item<double>() / most, 1e-5);
  for (std::int64_t border : {14, 16})
    EXPECT_LE(error.narrow(4, border * 32 - 1, 2).max().item<double>() / most, 1e-5);
}

TEST(DecodeClip, streams_tiles_to_what_whole_decodes_of_the_tiles_blend_to) {
  SmallDecoder small;
  at::Tensor latents = random_latents(3, 5, 4);
  const SpatialTiles tiles = {{.tile = 3, .stride = 2}, {.tile = 3, .stride = 2}};

  const Decoded got = decode(small, latents, tiled_stream(small, latents, tiles));

  at::Tensor want = join_tiles(tile_places(tiles, 5, 4), tiles, 32, [&](const TilePlace& place) {
    return small.whole(latents.narrow(3, place.top, place.height).narrow(4, place.left, place.width));
  });
  EXPECT_LE(test::error_of_max(got.frames, want), 1e-5);
}

TEST(DecodeClip, hands_on_frames_of_tiles_one_by_one_in_order) {
  SmallDecoder small;
  at::Tensor latents = random_latents(2, 4, 3);

  const Decoded got = decode(
      small, latents, tiled_stream(small, latents, {{.tile = 3, .stride = 1}, {.tile = 3, .stride = 3}}));

  EXPECT_EQ(got.pieces, std::vector<std::int64_t>(9, 1));
}

TEST(DecodeClip, decodes_a_batch_in_tiles_as_its_clips) {
  SmallDecoder small;
  at::Tensor first = random_latents(2, 4, 2), second = random_latents(2, 4, 2) * -0.5;
  at::Tensor both = at::cat({first, second});
  const SpatialTiles tiles = {{.tile = 3, .stride = 2}, {.tile = 2, .stride = 2}};

  at::Tensor got = decode(small, both, tiled_stream(small, both, tiles)).frames;
  at::Tensor want = decode(small, second, tiled_stream(small, second, tiles)).frames;

  EXPECT_LE(test::error_of_max(got.narrow(0, 1, 1), want), 1e-5);
}

TEST(DecodeClip, hands_on_what_is_settled_after_every_tile_in_time) {
  SmallDecoder small;
  at::Tensor latents = random_latents(5, 1, 1);

  const Decoded got = decode(small, latents, plan_for(small, latents, DecodeWay::tiled));

  EXPECT_EQ(got.pieces, (std::vector<std::int64_t>{9, 8, 8, 8}));
}

TEST(DecodeClip, tiles_in_space_inside_tiles_in_time) {
  SmallDecoder small;
  at::Tensor latents = random_latents(4, 3, 1);
  const ReferenceTiling tiling = {.tile_height = 64, .stride_height = 32};
  const ReferenceTiling in_space = {.tile_height = 64, .stride_height = 32, .in_time = false};

  const Decoded got = decode(small, latents, plan_for(small, latents, DecodeWay::tiled, tiling));

  EXPECT_EQ(got.frames.sizes(), (at::IntArrayRef{1, 3, 25, 96, 32}));
  at::Tensor first = latents.narrow(2, 0, 3);
  at::Tensor want = decode(small, first, plan_for(small, first, DecodeWay::tiled, in_space)).frames;
  EXPECT_LE(test::error_of_max(got.frames.narrow(2, 0, 9), want.narrow(2, 0, 9)), 1e-5);
}

TEST(DecodeClip, refuses_latents_of_another_shape_than_the_plans) {
  SmallDecoder small;
  at::Tensor latents = random_latents(2);
  const DecodePlan plan = plan_for(small, latents, DecodeWay::stream);

  EXPECT_THROW(decode(small, random_latents(3), plan), Error);
}

TEST(DecodeClip, names_the_folder_that_takes_no_file) {
  SmallDecoder small;
  at::Tensor latents = random_latents(2, 4, 1);
  const DecodePlan plan = tiled_stream(small, latents, {{.tile = 3, .stride = 2}, {.tile = 1, .stride = 1}});

  try {
    decode_clip(
        small.decoder, small.source, latents, plan, [](const at::Tensor&) {}, "/nowhere/at/all");
    FAIL() << "wrote there";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), testing::HasSubstr("/nowhere/at/all: cannot make a file"));
  }
}

}  // namespace
}  // namespace sluice::ltx2
