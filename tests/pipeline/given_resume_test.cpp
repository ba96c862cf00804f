// Runs with two stages, given pictures and sound, other samplers or several clips, stopped anywhere: they go
// on to the bytes of an undisturbed run and make nothing twice.
#include "pipeline/runs.h"

#include "support/throws_error.h"
#include "synth/upsampler.h"
#include "synth/write.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice::test {
namespace {

using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class GivenResume : public ::testing::Test {
 protected:
  Outputs outputs(const std::string& name) const { return everything(folder_.path(), name); }

  fs::path upsampler() const {
    const fs::path file = folder_ / "upsampler.safetensors";
    if (!fs::exists(file)) synth::write_plan(synth::plan_upsampler(file, synth::upsampler_sizes(64), {}), 0);
    return file;
  }
  // A picture and a sound, from a clip of the demo.
  const fs::path& earlier() const {
    static const TemporaryFolder folder;
    if (!fs::exists(folder / "clip.wav")) {
      Request request = demo_request();
      request.prompt = "a yellow square moves up on a black background, low tone";
      generate(request, {.wav = folder / "clip.wav", .frames_dir = folder / "frames"});
    }
    return folder.path();
  }
  fs::path picture() const { return earlier() / "frames/frame_00000.png"; }

  Request two_stages() const {
    Request request = demo_request();
    request.width = 128;
    request.images = {{.file = picture()}, {.file = picture(), .frame = -1, .strength = 0.5}};
    request.two_stage = TwoStageRequest{.upsampler = upsampler(), .adain = 0.5};
    return request;
  }

  // `first`: what the run that goes on does first.
  void expect_goes_on(const Request& request, const Outputs& whole, const Moment& stop,
                      const std::string& first) {
    SCOPED_TRACE(stop.phase + " " + std::to_string(stop.done));
    Outputs made = outputs(stop.phase + std::to_string(stop.done));
    if (whole.trace.empty()) made.trace.clear();
    if (whole.video.empty()) made.video.clear();
    if (whole.wav.empty()) made.wav.clear();
    ASSERT_TRUE(stop_at(stop, request, made));

    moments_ = resume(request, made);

    EXPECT_EQ(moments_.front(), first);
    EXPECT_TRUE(same_outputs(made, whole));
    EXPECT_THAT(folder_.names(), Not(Contains(HasSubstr("sluice-work"))));
  }

  TemporaryFolder folder_;
  std::vector<std::string> moments_;  // of what went on last
};

TEST_F(GivenResume, of_two_stages_goes_on_in_each_of_them_and_between) {
  const Request request = two_stages();
  generate(request, outputs("whole"));

  expect_goes_on(request, outputs("whole"), {"condition", 1}, "condition 1/2");
  expect_goes_on(request, outputs("whole"), {"denoise", 3}, "condition 1/2");
  EXPECT_THAT(moments_, Not(Contains(StartsWith("text"))));
  EXPECT_THAT(moments_, Not(Contains("denoise 2/8")));
  expect_goes_on(request, outputs("whole"), {"denoise", 8}, "upsample 0/1");
  EXPECT_THAT(moments_, Not(Contains(ContainsRegex("^denoise [0-9]/8"))));
  expect_goes_on(request, outputs("whole"), {"upsample", 1}, "condition 2 1/2");
  EXPECT_THAT(moments_, Not(Contains(StartsWith("upsample"))));
  expect_goes_on(request, outputs("whole"), {"condition 2", 2}, "condition 2 1/2");
  expect_goes_on(request, outputs("whole"), {"denoise 2", 0}, "condition 2 1/2");
  expect_goes_on(request, outputs("whole"), {"denoise 2", 2}, "condition 2 1/2");
  EXPECT_THAT(moments_, Not(Contains("denoise 2 1/3")));
  expect_goes_on(request, outputs("whole"), {"denoise 2", 3}, "decode sound 0/1");
  expect_goes_on(request, outputs("whole"), {"decode video", 5}, "decode video 1/17");
}

TEST_F(GivenResume, of_two_stages_works_without_a_trace_too) {
  const Request request = two_stages();
  Outputs whole = outputs("whole");
  whole.trace.clear();
  generate(request, whole);

  expect_goes_on(request, whole, {"denoise", 5}, "condition 1/2");
  expect_goes_on(request, whole, {"upsample", 1}, "condition 2 1/2");
  expect_goes_on(request, whole, {"denoise 2", 1}, "condition 2 1/2");
}

TEST_F(GivenResume, with_noise_in_every_step_draws_what_comes_next) {
  for (const Sampler sampler : {Sampler::euler_ancestral, Sampler::res_2s}) {
    Request request = demo_request();
    request.sampler = sampler;
    request.sigmas = {1.0, 0.8, 0.5, 0.2};
    Outputs whole = outputs(sampler == Sampler::res_2s ? "res_2s" : "ancestral");
    generate(request, whole);

    expect_goes_on(request, whole, {"denoise", 1}, "denoise 1/4");
    expect_goes_on(request, whole, {"denoise", 3}, "denoise 3/4");
    for (const char* name : {"denoise1", "denoise3"}) {
      for (const fs::path& file :
           {outputs(name).video, outputs(name).wav, outputs(name).latents, outputs(name).trace})
        fs::remove(file);
    }
  }
}

TEST_F(GivenResume, of_one_stream_goes_on) {
  Request request = demo_request();
  request.streams = Streams::audio;
  Outputs sound = outputs("sound");
  sound.video.clear();
  generate(request, sound);
  expect_goes_on(request, sound, {"denoise", 4}, "denoise 4/8");

  request.streams = Streams::video;
  Outputs picture = outputs("picture");
  picture.wav.clear();
  generate(request, picture);
  expect_goes_on(request, picture, {"denoise", 5}, "denoise 5/8");
}

TEST_F(GivenResume, of_a_given_sound_codes_it_again_and_goes_on) {
  Request request = demo_request();
  request.audio = earlier() / "clip.wav";
  generate(request, outputs("whole"));

  expect_goes_on(request, outputs("whole"), {"denoise", 4}, "denoise 4/8");
  expect_goes_on(request, outputs("whole"), {"decode video", 4}, "decode video 1/17");
}

TEST_F(GivenResume, of_a_guided_run_with_an_own_negative_prompt_goes_on) {
  Request request = demo_request();
  request.variant = Variant::dev;
  request.steps = 3;
  request.negative_prompt = "a blue circle";
  request.guidance = {.cfg = 3.0, .stg = 0.0, .modality = 1.0};
  request.audio_guidance = {.cfg = 7.0};
  request.images = {{.file = picture()}};
  generate(request, outputs("whole"));

  expect_goes_on(request, outputs("whole"), {"denoise", 2}, "condition 1/1");
}

TEST_F(GivenResume, of_several_clips_goes_on_with_all_of_them) {
  Request request = demo_request();
  request.count = 2;
  Outputs whole = outputs("whole"), made = outputs("made");
  whole.trace.clear();
  made.trace.clear();
  generate(request, whole);
  for (const Moment& stop : {Moment{"denoise", 3}, Moment{"decode video", 7}}) {
    made.overwrite = stop.phase == "decode video";
    ASSERT_TRUE(stop_at(stop, request, made));

    resume(request, made);

    for (const char* file : {"-42.mp4", "-43.mp4", "-42.wav", "-43.wav", "-42.latents", "-43.latents"}) {
      const std::string expected = file_content(folder_ / (std::string("whole") + file));
      EXPECT_FALSE(expected.empty()) << file;
      EXPECT_EQ(file_content(folder_ / (std::string("made") + file)), expected) << file;
    }
  }
  EXPECT_THAT(folder_.names(), Not(Contains(HasSubstr("sluice-work"))));
}

TEST_F(GivenResume, is_refused_where_something_else_is_given) {
  const Request request = two_stages();
  ASSERT_TRUE(stop_at({"denoise", 2}, request, outputs("clip")));
  auto refused = [&](auto change, const std::string& difference) {
    Request other = request;
    change(other);
    EXPECT_THAT([&] { resume(other, outputs("clip")); },
                ThrowsError(ErrorKind::usage, HasSubstr(difference)));
  };

  refused([](Request& r) { r.images[0].strength = 0.9; }, "frames_given");
  refused([&](Request& r) { r.images[0].file = earlier() / "frames/frame_00001.png"; }, "frames_given");
  refused([](Request& r) { r.images.clear(); }, "frames_given");
  refused([&](Request& r) { r.audio = earlier() / "clip.wav"; }, "audio");
  refused([](Request& r) { r.fit = Fit::pad; }, "fit \"crop\" there, \"pad\" here");
  refused([](Request& r) { r.image_crf = 0; }, "image_crf 33 there, 0 here");
  refused([](Request& r) { r.two_stage->adain = 1; }, "two_stage");
  refused([](Request& r) { r.two_stage.reset(); }, "two_stage");
  refused([](Request& r) { r.sampler = Sampler::res_2s; }, "sampler \"euler\" there, \"res_2s\" here");
}

}  // namespace
}  // namespace sluice::test
