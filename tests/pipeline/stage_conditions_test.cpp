#include "pipeline/stage_conditions.h"

#include "sampling/latents.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kChannels = 5, kFrame = 2 * 4;  // tokens of a latent frame
constexpr std::int64_t kSound = 7, kSoundChannels = 6;
constexpr double kFps = 25;

ltx2::TransformerConfig transformer_config() {
  ltx2::TransformerConfig config;
  config.video = {.in_channels = kChannels, .heads = 2, .head_dim = 12, .max_seconds = 20};
  config.audio = {.in_channels = kSoundChannels, .heads = 2, .head_dim = 8, .max_seconds = 20};
  config.cross_width = config.audio.width();
  config.rope_type = "split";
  return config;
}

at::Tensor filled(std::int64_t frames, std::int64_t height, std::int64_t width, float value) {
  return at::full({1, kChannels, frames, height, width}, value);
}

// Three latent frames of 2 x 4, and what is given over them; each group's latents are of one value.
class Layout : public testing::Test {
 protected:
  void give(PlannedFrames frames, float value) {
    const auto shape = latents_of(frames, stage_.video, {});
    given_.frames.push_back(filled(shape.frames, shape.height, shape.width, value));
    plan_.frames.push_back(std::move(frames));
  }

  StageConditions laid_out(double attention = 1) {
    attention_ = attention;
    return lay_out(inputs(), given_);
  }

  LayoutInputs inputs() const {
    return {.transformer = config_,
            .plan = plan_,
            .stage = stage_,
            .audio = audio_,
            .fps = kFps,
            .reference_attention = attention_};
  }

  // Of the tokens [begin, end): the one value that they have, NaN if they differ.
  static float value(const at::Tensor& tokens, std::int64_t begin, std::int64_t end) {
    const at::Tensor part = tokens.narrow(1, begin, end - begin);
    return at::equal(part, part.flatten()[0].expand_as(part)) ? part.flatten()[0].item<float>() : NAN;
  }

  const ltx2::TransformerConfig config_ = transformer_config();
  ConditionPlan plan_;
  StageSettings stage_{.video = {.channels = kChannels, .frames = 3, .height = 2, .width = 4}};
  const sampling::AudioLatentShape audio_{.channels = 2, .length = kSound, .mel_bins = 3};
  GivenLatents given_;
  double attention_ = 1;
};

TEST_F(Layout, of_nothing_given_is_nothing) {
  const StageConditions conditions = laid_out();

  EXPECT_FALSE(conditions.video.defined());
  EXPECT_FALSE(conditions.audio.defined());
  EXPECT_FALSE(conditions.coordinates_beside.defined());
  EXPECT_FALSE(conditions.video_self_mask.defined());
}

TEST_F(Layout, puts_frames_at_the_beginning_in_the_grid_and_others_behind_it_in_their_order) {
  give({.frame = 0, .strength = 0.75}, 1);
  give({.frame = 16, .strength = 0.5}, 2);
  give({.source = FrameSource::video, .frame = 1, .count = 9, .strength = 0.25}, 3);
  give({.source = FrameSource::reference, .count = 9, .strength = 1, .downscale = 2}, 4);

  const auto [mask, clean] = laid_out().video;

  const std::int64_t grid = 3 * kFrame, image = grid + kFrame, video = image + 2 * kFrame;
  ASSERT_EQ(mask.size(1), video + kFrame / 2) << "a reference of half the size has a quarter of the tokens";
  EXPECT_EQ(value(mask, 0, kFrame), 0.75F);
  EXPECT_EQ(value(mask, kFrame, grid), 0.0F);
  EXPECT_EQ(value(mask, grid, image), 0.5F);
  EXPECT_EQ(value(mask, image, video), 0.25F);
  EXPECT_EQ(value(mask, video, mask.size(1)), 1.0F);
  EXPECT_EQ(value(clean, 0, kFrame), 1.0F);
  EXPECT_EQ(value(clean, grid, image), 2.0F);
  EXPECT_EQ(value(clean, image, video), 3.0F);
  EXPECT_EQ(value(clean, video, clean.size(1)), 4.0F);
}

TEST_F(Layout, lets_the_later_of_two_first_frames_stand) {
  give({.frame = 0, .strength = 1}, 1);
  give({.frame = 0, .strength = 0.5}, 2);

  const auto [mask, clean] = laid_out().video;

  EXPECT_EQ(value(mask, 0, kFrame), 0.5F);
  EXPECT_EQ(value(clean, 0, kFrame), 2.0F);
}

TEST_F(Layout, of_a_retake_gives_everything_but_its_range_in_both_streams) {
  give({.source = FrameSource::video, .count = 17}, 1);
  plan_.retaken_video = Range{1, 2};
  plan_.retaken_audio = Range{2, 5};
  given_.audio = at::ones({1, kSound, kSoundChannels});

  const StageConditions conditions = laid_out();

  const at::Tensor &video = conditions.video.mask, &audio = conditions.audio.mask;
  EXPECT_EQ(value(video, 0, kFrame), 1.0F);
  EXPECT_EQ(value(video, kFrame, 2 * kFrame), 0.0F);
  EXPECT_EQ(value(video, 2 * kFrame, 3 * kFrame), 1.0F);
  EXPECT_TRUE(at::equal(audio.flatten(), at::tensor({1.0F, 1.0F, 0.0F, 0.0F, 0.0F, 1.0F, 1.0F})));
  EXPECT_FALSE(conditions.frozen_audio) << "a part of it takes steps";
}

TEST_F(Layout, freezes_a_sound_that_is_heard) {
  plan_.sound = true;
  given_.audio = at::ones({1, kSound, kSoundChannels});

  const StageConditions conditions = laid_out();

  EXPECT_TRUE(conditions.frozen_audio);
  EXPECT_EQ(value(conditions.audio.mask, 0, kSound), 1.0F);
}

// Frames 9 … of a clip, of 25 a second: no causal shift, and one picture lasts one frame.
TEST_F(Layout, places_keyframes_at_their_frame_and_references_over_the_clip) {
  give({.frame = 9}, 1);
  give({.source = FrameSource::video, .frame = 1, .count = 9}, 2);
  give({.source = FrameSource::reference, .count = 9, .downscale = 2}, 3);

  const at::Tensor places = laid_out().coordinates_beside;

  ASSERT_EQ(places.size(2), kFrame + 2 * kFrame + kFrame / 2);
  auto bounds = [&](std::int64_t axis, std::int64_t token) {
    const at::Tensor pair = places[0][axis][token];
    return std::pair(pair[0].item<float>(), pair[1].item<float>());
  };
  auto seconds = [](float first, float last) { return std::pair(first / 25, last / 25); };
  EXPECT_EQ(bounds(0, 0), seconds(9, 10)) << "a picture";
  EXPECT_EQ(bounds(0, kFrame), seconds(1, 9)) << "a video's first latent";
  EXPECT_EQ(bounds(0, 2 * kFrame), seconds(9, 17)) << "its second";
  EXPECT_EQ(bounds(0, 3 * kFrame), seconds(0, 1)) << "a reference's first";
  EXPECT_EQ(bounds(0, 3 * kFrame + 2), seconds(1, 9)) << "its second";
  EXPECT_EQ(bounds(1, kFrame - 1), std::pair(32.0F, 64.0F)) << "rows";
  EXPECT_EQ(bounds(2, kFrame - 1), std::pair(96.0F, 128.0F)) << "columns";
  EXPECT_EQ(bounds(2, 3 * kFrame + 1), std::pair(64.0F, 128.0F)) << "columns of half the size";
}

TEST_F(Layout, has_a_place_for_every_token) {
  give({.frame = 9}, 1);
  const StageConditions conditions = laid_out();

  const ltx2::Positions positions = stage_positions(inputs(), conditions, ltx2::Modalities::both);

  const ltx2::Positions without = stage_positions(inputs(), {}, ltx2::Modalities::both);
  EXPECT_FALSE(at::equal(positions.video.cos, without.video.cos));
  EXPECT_TRUE(at::equal(positions.audio.cos, without.audio.cos));
  EXPECT_EQ(positions.video.cos.numel() * 3, without.video.cos.numel() * 4)
      << "four frames' tokens for three";
}

TEST_F(Layout, has_no_mask_of_who_sees_whom_where_references_are_seen_fully) {
  give({.source = FrameSource::reference, .count = 9, .downscale = 2}, 1);

  EXPECT_FALSE(laid_out(1).video_self_mask.defined());
  EXPECT_TRUE(laid_out(0.5).video_self_mask.defined());
}

TEST_F(Layout, has_no_mask_of_who_sees_whom_for_keyframes_alone) {
  give({.frame = 9}, 1);

  EXPECT_FALSE(laid_out(0.5).video_self_mask.defined());
}

TEST_F(Layout, hides_references_from_keyframes_and_from_each_other) {
  give({.frame = 9}, 1);
  give({.source = FrameSource::reference, .count = 1, .downscale = 2}, 2);
  give({.source = FrameSource::reference, .count = 9, .downscale = 2}, 3);

  const at::Tensor mask = laid_out(0.25).video_self_mask;

  const std::int64_t grid = 3 * kFrame, first = grid + kFrame, second = first + 2, all = second + 4;
  at::Tensor want = at::zeros({1, all, all});
  auto fill = [&](std::int64_t a, std::int64_t a_end, std::int64_t b, std::int64_t b_end, double sight) {
    want.slice(1, a, a_end).slice(2, b, b_end).fill_(sight);
    want.slice(1, b, b_end).slice(2, a, a_end).fill_(sight);
  };
  fill(0, first, 0, first, 1);
  fill(0, grid, first, all, 0.25);
  fill(first, second, first, second, 1);
  fill(second, all, second, all, 1);
  EXPECT_TRUE(at::equal(mask, want));
}

class Start : public Layout {
 protected:
  Latents noise(std::int64_t tokens_beside = 0) const {
    return {.video = at::full({1, 3 * kFrame + tokens_beside, kChannels}, -1.0F),
            .audio = at::full({1, kSound, kSoundChannels}, -1.0F)};
  }
  Latents made() const {
    return {.video = at::full({1, 3 * kFrame, kChannels}, 3.0F),
            .audio = at::full({1, kSound, kSoundChannels}, 3.0F)};
  }
};

TEST_F(Start, is_the_noise_where_nothing_is_given) {
  const Latents start = stage_start(laid_out(), noise(), {}, 1);

  EXPECT_TRUE(at::equal(start.video, noise().video));
  EXPECT_TRUE(at::equal(start.audio, noise().audio));
}

TEST_F(Start, of_strength_0_is_the_noise_to_the_bit) {
  give({.frame = 0, .strength = 0}, 1);

  EXPECT_TRUE(at::equal(stage_start(laid_out(), noise(), {}, 1).video, noise().video));
}

TEST_F(Start, mixes_given_tokens_by_their_strength) {
  give({.frame = 0, .strength = 1}, 1);
  give({.frame = 9, .strength = 0.5}, 1);

  const at::Tensor video = stage_start(laid_out(), noise(kFrame), {}, 1).video;

  EXPECT_EQ(value(video, 0, kFrame), 1.0F);
  EXPECT_EQ(value(video, kFrame, 3 * kFrame), -1.0F);
  EXPECT_EQ(value(video, 3 * kFrame, 4 * kFrame), 0.0F);
}

TEST_F(Start, of_a_second_stage_puts_noise_on_both_streams_and_what_is_given_over_what_was_made) {
  give({.frame = 0, .strength = 1}, 1);
  give({.frame = 9, .strength = 0}, 5);

  const Latents start = stage_start(laid_out(), noise(kFrame), made(), 0.5);

  EXPECT_EQ(value(start.video, 0, kFrame), 1.0F);
  EXPECT_EQ(value(start.video, kFrame, 3 * kFrame), 1.0F) << "half of 3, half of -1";
  EXPECT_EQ(value(start.audio, 0, kSound), 1.0F);
}

TEST_F(Start, of_a_first_frame_of_strength_0_refines_what_was_made) {
  give({.frame = 0, .strength = 0}, 5);

  const Latents start = stage_start(laid_out(), noise(), made(), 0.5);

  EXPECT_EQ(value(start.video, 0, 3 * kFrame), 1.0F);
}

TEST_F(Start, has_a_given_sound_as_it_is) {
  plan_.sound = true;
  given_.audio = at::full({1, kSound, kSoundChannels}, 2.0F);

  EXPECT_TRUE(at::equal(stage_start(laid_out(), noise(), made(), 0.5).audio, given_.audio));
}

}  // namespace
}  // namespace sluice::pipeline
