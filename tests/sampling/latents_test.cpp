#include "sampling/latents.h"

#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

namespace sluice::sampling {
namespace {

using test::Fixture;

TEST(Packing, equals_the_reference_and_unpacking_undoes_it) {
  Fixture fixture("sampling/packing");
  const at::Tensor& video = fixture.input("video");
  const at::Tensor& audio = fixture.input("audio");

  at::Tensor video_tokens = pack_video(video), audio_tokens = pack_audio(audio);

  EXPECT_TRUE(fixture.matches("video_packed", video_tokens));
  EXPECT_TRUE(fixture.matches("audio_packed", audio_tokens));
  EXPECT_TRUE(at::equal(unpack_video(video_tokens, {.channels = video.size(1),
                                                    .frames = video.size(2),
                                                    .height = video.size(3),
                                                    .width = video.size(4)}),
                        video));
  EXPECT_TRUE(
      at::equal(unpack_audio(audio_tokens,
                             {.channels = audio.size(1), .length = audio.size(2), .mel_bins = audio.size(3)}),
                audio));
}

TEST(Lengths, equal_the_reference) {
  Fixture fixture("sampling/lengths");
  const auto& config = fixture.config();
  const AudioRate rate{.sample_rate = config.at("sample_rate"),
                       .hop_length = config.at("hop_length"),
                       .downsample = config.at("audio_downsample")};
  auto frames = fixture.params().at("frames").get<std::vector<std::int64_t>>();
  auto fps = fixture.params().at("fps").get<std::vector<double>>();
  std::vector<std::int64_t> audio, video;

  for (std::size_t i = 0; i < frames.size(); ++i) {
    audio.push_back(audio_latent_length(frames[i], fps[i], rate));
    video.push_back(latent_frames(frames[i], {.frames = config.at("video_downsample")}));
  }

  EXPECT_TRUE(fixture.matches("audio_latents", at::tensor(audio)));
  EXPECT_TRUE(fixture.matches("video_latents", at::tensor(video)));
}

TEST(AudioLength, rounds_half_to_even) {
  EXPECT_EQ(audio_latent_length(25, Rational{50, 1}), 12);  // 12.5
  EXPECT_EQ(audio_latent_length(75, Rational{50, 1}), 38);  // 37.5
}

TEST(AudioLength, takes_an_exact_ntsc_rate) {
  EXPECT_EQ(audio_latent_length(121, Rational{24000, 1001}), 126);  // 126.17
  EXPECT_EQ(audio_latent_length(121, Rational{24, 1}), 126);        // 126.04
}

}  // namespace
}  // namespace sluice::sampling
