#include "models/ltx2/video_vae/decode_stream.h"

#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

class VideoDecodeParity : public testing::TestWithParam<std::string> {};

TEST_P(VideoDecodeParity, gives_the_references_latents_and_frames) {
  Fixture fixture("video_vae/" + GetParam());
  VideoDecoder decoder(VideoVaeConfig::parse(fixture.config()));
  auto source = test::open_weights(fixture.weights_path(), decoder.groups(), VideoDecoder::ignore_rules());

  at::Tensor latents;
  {
    auto lease = source->acquire(decoder.statistics_group());
    latents = denormalize(decoder.statistics(), decoder.config().scaling_factor,
                          fixture.input("latents_normalized"));
  }
  at::Tensor sample = decode_video(decoder, *source, latents);

  EXPECT_TRUE(fixture.matches("latents", latents));
  EXPECT_TRUE(fixture.matches("sample", sample));
}

INSTANTIATE_TEST_SUITE_P(cases, VideoDecodeParity, testing::Values("decode_f1", "decode_f9", "decode_f17"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::ltx2
