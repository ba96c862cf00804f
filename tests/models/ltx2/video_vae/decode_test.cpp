#include "models/ltx2/video_vae/decode_stream.h"

#include "models/ltx2/video_vae/small_decoder.h"
#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <limits>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

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

struct StreamCase {
  std::string name;
  nlohmann::json changes;
};

class VideoDecodeStreaming : public testing::TestWithParam<StreamCase> {};

TEST_P(VideoDecodeStreaming, gives_the_whole_clips_frames_for_every_chunk_and_piece) {
  SmallDecoder small(GetParam().changes);
  for (std::int64_t latent_frames : {1, 2, 3}) {  // 1, 9 and 17 frames
    at::Tensor latents = random_latents(latent_frames);
    at::Tensor whole = small.whole(latents);
    ASSERT_EQ(whole.sizes(), (at::IntArrayRef{1, 3, 8 * latent_frames - 7, 64, 96}));

    for (std::int64_t chunk = 1; chunk <= latent_frames; chunk++)
      for (std::int64_t piece : {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{5}, kAll})
        EXPECT_LE(test::error_of_max(small.streamed(latents, chunk, piece), whole), 1e-5)
            << latent_frames << " latent frames in chunks of " << chunk << ", pieces of " << piece;
  }
}

INSTANTIATE_TEST_SUITE_P(decoders, VideoDecodeStreaming,
                         testing::Values(StreamCase{"non_causal", nlohmann::json::object()},
                                         StreamCase{"causal", {{"decoder_causal", true}}},
                                         StreamCase{"reflect", {{"decoder_spatial_padding_mode", "reflect"}}},
                                         StreamCase{"residual_upsamplers",
                                                    {{"decoder_block_out_channels", {8, 16, 16, 32}},
                                                     {"upsample_residual", {false, true, true, true}}}}),
                         [](const auto& info) { return info.param.name; });

TEST(VideoDecodeStream, reaches_beyond_the_frames_of_a_long_clip) {
  SmallDecoder small;
  at::Tensor latents = random_latents(17, 1, 1);

  at::Tensor streamed = small.streamed(latents, 2, 3);

  EXPECT_EQ(streamed.size(2), 129);
  EXPECT_LE(test::error_of_max(streamed, small.whole(latents)), 1e-5);
}

TEST(VideoDecodeStream, keeps_a_state_that_does_not_depend_on_the_clips_length) {
  SmallDecoder small;
  VideoDecodeStream stream(small.decoder, small.source, [](const at::Tensor&) {}, {.frames = 2});
  std::vector<std::int64_t> bytes;
  for (int push = 0; push < 40; push++) {
    stream.push(random_latents(1), Last::no);
    bytes.push_back(stream.state_bytes());
  }

  EXPECT_GT(bytes[20], 0);
  EXPECT_EQ(bytes[20], bytes[30]);
  EXPECT_EQ(bytes[20], bytes[39]);
  EXPECT_EQ(bytes[20], *std::max_element(bytes.begin(), bytes.end()));
}

TEST(VideoDecodeStream, hands_on_frames_before_the_clip_ends) {
  SmallDecoder small;
  std::int64_t frames = 0;
  VideoDecodeStream stream(small.decoder, small.source,
                           [&](const at::Tensor& decoded) { frames += decoded.size(2); });

  for (int push = 0; push < 20; push++) stream.push(random_latents(1), Last::no);

  EXPECT_GT(frames, 0);
  EXPECT_LT(frames, 8 * 20 - 7);
}

TEST(VideoDecodeStream, hands_on_pieces_no_longer_than_the_limit) {
  SmallDecoder small;
  std::int64_t longest = 0;
  VideoDecodeStream stream(small.decoder, small.source,
                           [&](const at::Tensor& decoded) { longest = std::max(longest, decoded.size(2)); },
                           {.frames = 2});

  stream.push(random_latents(6), Last::yes);

  EXPECT_LE(longest, 3);  // the last piece brings the frame that lagged
}

TEST(VideoDecodeStream, cuts_pieces_by_bytes_too) {
  SmallDecoder small;
  at::Tensor latents = random_latents(3);

  at::Tensor frames =
      decode_video(small.decoder, small.source, latents, {.bytes = 1});  // one frame at a time

  EXPECT_LE(test::error_of_max(frames, small.whole(latents)), 1e-5);
}

TEST(VideoDecodeStream, decodes_a_batch_as_its_clips) {
  SmallDecoder small;
  at::Tensor first = random_latents(2), second = random_latents(2) * -0.5;

  at::Tensor both = small.streamed(at::cat({first, second}), 1, 2);

  EXPECT_LE(test::error_of_max(both.narrow(0, 0, 1), small.whole(first)), 1e-5);
  EXPECT_LE(test::error_of_max(both.narrow(0, 1, 1), small.whole(second)), 1e-5);
}

TEST(VideoDecodeStream, computes_in_the_latents_f32_with_bf16_weights) {
  SmallDecoder small;
  test::TensorMap bf16 = test::converted(small.weights, at::kBFloat16);
  test::TensorSource narrow(bf16), wide(test::converted(bf16, at::kFloat));
  at::Tensor latents = random_latents(2);

  at::Tensor got = decode_video(small.decoder, narrow, latents);

  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LE(test::error_of_max(got, decode_video(small.decoder, wide, latents)), 1e-5);
}

TEST(VideoDecodeStream, follows_the_latents_into_bf16) {
  SmallDecoder small;
  test::TensorSource source(test::converted(small.weights, at::kBFloat16));
  at::Tensor latents = random_latents(2);

  at::Tensor frames = decode_video(small.decoder, source, latents.to(at::kBFloat16));

  EXPECT_EQ(frames.scalar_type(), at::kBFloat16);
  EXPECT_LE(test::error_of_max(frames, small.whole(latents)), 0.05);
}

TEST(VideoDecodeStream, refuses_frames_after_the_end_and_a_clip_without_any) {
  SmallDecoder small;
  VideoDecodeStream ended(small.decoder, small.source, [](const at::Tensor&) {});
  ended.push(random_latents(1), Last::yes);
  VideoDecodeStream empty(small.decoder, small.source, [](const at::Tensor&) {});

  EXPECT_THROW(ended.push(random_latents(1), Last::no), Error);
  EXPECT_THROW(empty.push(random_latents(1).narrow(2, 0, 0), Last::yes), Error);
  EXPECT_THROW(empty.push(at::zeros({1, 5, 1, 2, 2}), Last::yes), Error);
}

TEST(LatentStatistics, normalize_undoes_denormalize) {
  LatentStatistics statistics{at::tensor({1.0, -2.0}), at::tensor({0.5, 4.0})};
  at::Tensor latents = at::arange(16, at::kFloat).view({1, 2, 2, 2, 2});

  at::Tensor raw = denormalize(statistics, 2.0, latents);

  EXPECT_EQ(raw[0][0][0][0][1].item<float>(), 1.0 * 0.5 / 2.0 + 1.0);
  EXPECT_TRUE(at::equal(normalize(statistics, 2.0, raw), latents));
}

}  // namespace
}  // namespace sluice::ltx2
