#include "pipeline/stage_noise.h"

#include "sampling/latents.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::pipeline {
namespace {

using ltx2::Modalities;
using sampling::NoiseSource;

constexpr std::uint64_t kSeed = 42;

// Two stages of 6 channels, 3 latent frames of 1 x 2 and of 2 x 4; sound of 5 latents.
Settings settings_of(std::int64_t tokens_beside) {
  Settings settings;
  settings.stages.resize(2);
  settings.stages[0].video = {.channels = 6, .frames = 3, .height = 1, .width = 2};
  settings.stages[1].video = {.channels = 6, .frames = 3, .height = 2, .width = 4};
  for (StageSettings& stage : settings.stages) stage.tokens_beside = tokens_beside;
  settings.audio = {.channels = 2, .length = 5, .mel_bins = 4};
  return settings;
}

testing::AssertionResult equal(const Latents& one, const Latents& other) {
  auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return a.defined() == b.defined() && (!a.defined() || at::equal(a, b));
  };
  if (!same(one.video, other.video)) return testing::AssertionFailure() << "the video's noise differs";
  if (!same(one.audio, other.audio)) return testing::AssertionFailure() << "the sound's noise differs";
  return testing::AssertionSuccess();
}

TEST(StageNoise, is_drawn_as_latents_and_packed_for_text_and_a_first_frame) {
  const Latents noise = stage_noise(settings_of(0), Modalities::both, kSeed, 0);

  NoiseSource source(kSeed);
  const at::Tensor video = source.draw({1, 6, 3, 1, 2}), audio = source.draw({1, 2, 5, 4});
  EXPECT_TRUE(equal(noise, {sampling::pack_video(video), sampling::pack_audio(audio)}));
}

// A first frame is no token beside the grid, whatever its strength.
TEST(StageNoise, of_a_first_frame_of_strength_0_is_that_of_text) {
  Settings settings = settings_of(0);
  settings.conditions.frames = {{.source = FrameSource::image, .strength = 0}};

  EXPECT_TRUE(equal(stage_noise(settings, Modalities::both, kSeed, 0),
                    stage_noise(settings_of(0), Modalities::both, kSeed, 0)));
}

TEST(StageNoise, is_drawn_packed_where_frames_are_given_beside_the_grid) {
  const Latents noise = stage_noise(settings_of(4), Modalities::both, kSeed, 0);

  NoiseSource source(kSeed);
  const at::Tensor video = source.draw({1, 6 + 4, 6}), audio = source.draw({1, 5, 8});
  EXPECT_TRUE(equal(noise, {video, audio}));
}

TEST(StageNoise, of_the_second_stage_goes_on_packed_in_the_stream_of_the_first) {
  const Latents noise = stage_noise(settings_of(0), Modalities::both, kSeed, 1);

  NoiseSource source(kSeed);
  source.draw({1, 6, 3, 1, 2});
  source.draw({1, 2, 5, 4});
  const at::Tensor video = source.draw({1, 24, 6}), audio = source.draw({1, 5, 8});
  EXPECT_TRUE(equal(noise, {video, audio}));
}

TEST(StageNoise, draws_nothing_for_a_stream_that_is_left_out) {
  const Latents video = stage_noise(settings_of(0), Modalities::video, kSeed, 0);
  const Latents audio = stage_noise(settings_of(0), Modalities::audio, kSeed, 0);

  EXPECT_TRUE(equal(video, {.video = stage_noise(settings_of(0), Modalities::both, kSeed, 0).video}));
  EXPECT_TRUE(equal(audio, {.audio = sampling::pack_audio(NoiseSource(kSeed).draw({1, 2, 5, 4}))}));
}

const Latents kShapes{.video = at::zeros({1, 8, 6}), .audio = at::zeros({1, 5, 8})};

TEST(StepNoise, is_packed_video_then_audio_from_a_stream_of_its_own) {
  NoiseSource steps(kSeed + 10000), middles(kSeed + 20000);
  const at::Tensor video = steps.draw({1, 8, 6}), audio = steps.draw({1, 5, 8});
  const at::Tensor middle_video = middles.draw({1, 8, 6}), middle_audio = middles.draw({1, 5, 8});

  EXPECT_TRUE(equal(StepNoise(kSeed, NoiseUse::step, kShapes).draw(), {video, audio}));
  EXPECT_TRUE(equal(StepNoise(kSeed, NoiseUse::middle, kShapes).draw(), {middle_video, middle_audio}));
}

TEST(StepNoise, skipped_draws_leave_the_next_one_as_it_would_have_been) {
  StepNoise whole(kSeed, NoiseUse::step, kShapes), resumed(kSeed, NoiseUse::step, kShapes);
  for (int step = 0; step < 3; ++step) whole.draw();

  resumed.skip(3);

  EXPECT_TRUE(equal(resumed.draw(), whole.draw()));
}

TEST(StepNoise, leaves_out_what_a_clip_has_not) {
  const Latents noise = StepNoise(kSeed, NoiseUse::step, {.audio = kShapes.audio}).draw();

  EXPECT_TRUE(equal(noise, {.audio = NoiseSource(kSeed + 10000).draw({1, 5, 8})}));
}

}  // namespace
}  // namespace sluice::pipeline
