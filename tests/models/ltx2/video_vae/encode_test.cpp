#include "models/ltx2/video_vae/encode_stream.h"

#include "models/ltx2/video_vae/small_encoder.h"
#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

const nlohmann::json kUnchanged = nlohmann::json::object();

class VideoEncodeParity : public testing::TestWithParam<std::string> {};

TEST_P(VideoEncodeParity, gives_the_references_mean_and_log_variance) {
  Fixture fixture("video_vae/" + GetParam());
  VideoEncoder encoder(VideoEncoderConfig::parse(fixture.config()));
  auto source = test::open_weights(fixture.weights_path(), encoder.groups(), {{"latents_", "not encoding"}});

  EncodedFrames got = encode_video(encoder, *source, at::kFloat, fixture.input("video"));

  EXPECT_TRUE(fixture.matches("mean", got.mean));
  EXPECT_TRUE(fixture.matches("logvar", got.logvar.expand_as(fixture.output("logvar"))));
}

INSTANTIATE_TEST_SUITE_P(cases, VideoEncodeParity, testing::Values("encode_f1", "encode_f9", "encode_f17"),
                         [](const auto& info) { return info.param; });

struct StreamCase {
  std::string name;
  nlohmann::json changes;
};

class VideoEncodeStreaming : public testing::TestWithParam<StreamCase> {};

TEST_P(VideoEncodeStreaming, gives_the_whole_clips_latents_for_every_part_and_piece) {
  SmallEncoder small(GetParam().changes);
  for (std::int64_t frames : {1, 9, 17}) {
    at::Tensor clip = random_frames(frames);
    EncodedFrames whole = small.whole(clip);
    ASSERT_EQ(whole.mean.sizes(), (at::IntArrayRef{1, 16, (frames - 1) / 8 + 1, 2, 3}));
    ASSERT_EQ(whole.logvar.sizes(), (at::IntArrayRef{1, 1, (frames - 1) / 8 + 1, 2, 3}));

    for (std::int64_t piece = 1; piece <= frames; piece++) {
      const std::int64_t part = 1 + piece * 5 % 7;
      EncodedFrames got = small.streamed(clip, part, piece);
      EXPECT_LE(test::error_of_max(got.mean, whole.mean), 1e-5)
          << frames << " frames in parts of " << part << ", pieces of " << piece;
      EXPECT_LE(test::error_of_max(got.logvar, whole.logvar), 1e-5);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    encoders, VideoEncodeStreaming,
    testing::Values(StreamCase{"causal", kUnchanged}, StreamCase{"non_causal", {{"encoder_causal", false}}},
                    StreamCase{"reflect", {{"encoder_spatial_padding_mode", "reflect"}}},
                    StreamCase{
                        "other_order",
                        {{"downsample_type", {"spatiotemporal", "spatial", "spatiotemporal", "temporal"}},
                         {"layers_per_block", {0, 1, 2, 0, 1}}}}),
    [](const auto& info) { return info.param.name; });

TEST(VideoEncodeStream, gives_the_same_bits_however_many_frames_come_at_once) {
  SmallEncoder small;
  at::Tensor clip = random_frames(25, 32, 64);

  EncodedFrames whole = small.streamed(clip, 25, 8), singly = small.streamed(clip, 1, 8);

  EXPECT_EQ(whole.mean.size(2), 4);
  EXPECT_TRUE(at::equal(whole.mean, singly.mean));
  EXPECT_TRUE(at::equal(whole.logvar, singly.logvar));
}

TEST(VideoEncodeStream, takes_a_last_push_without_frames) {
  SmallEncoder small;
  at::Tensor clip = random_frames(9, 32, 32);
  std::vector<at::Tensor> means;
  VideoEncodeStream stream(small.encoder, small.source, at::kFloat,
                           [&](const EncodedFrames& latents) { means.push_back(latents.mean); },
                           {.frames = 9});

  stream.push(clip, Last::no);
  stream.push(clip.narrow(2, 0, 0), Last::yes);

  EXPECT_LE(test::error_of_max(at::cat(means, 2), small.whole(clip).mean), 1e-5);
}

// Channels last, as pictures are read, and every second row of a larger clip.
TEST(VideoEncodeStream, takes_frames_in_any_layout) {
  SmallEncoder small;
  at::Tensor clip = random_frames(9, 32, 64);
  at::Tensor tall = at::zeros({1, 3, 9, 64, 64});
  tall.slice(3, 0, 64, 2).copy_(clip);

  EncodedFrames plain = small.whole(clip);

  EXPECT_TRUE(at::equal(small.whole(clip.contiguous(at::MemoryFormat::ChannelsLast3d)).mean, plain.mean));
  EXPECT_TRUE(at::equal(small.whole(tall.slice(3, 0, 64, 2)).mean, plain.mean));
}

TEST(VideoEncodeStream, keeps_a_state_that_does_not_depend_on_the_clips_length) {
  SmallEncoder small;
  VideoEncodeStream stream(small.encoder, small.source, at::kFloat, [](const EncodedFrames&) {});
  std::vector<std::int64_t> bytes;
  for (int push = 0; push < 64; push++) {
    stream.push(random_frames(1, 32, 32), Last::no);
    bytes.push_back(stream.state_bytes());
  }

  EXPECT_GT(bytes[15], 0);
  EXPECT_EQ(bytes[15], bytes[31]);
  EXPECT_EQ(bytes[15], bytes[63]);
  EXPECT_EQ(*std::max_element(bytes.begin() + 8, bytes.begin() + 24),
            *std::max_element(bytes.begin() + 40, bytes.begin() + 56));
}

TEST(VideoEncodeStream, hands_on_latents_before_the_clip_ends) {
  SmallEncoder small;
  std::int64_t latents = 0;
  VideoEncodeStream stream(small.encoder, small.source, at::kFloat,
                           [&](const EncodedFrames& encoded) { latents += encoded.mean.size(2); });

  stream.push(random_frames(17, 32, 32), Last::no);

  EXPECT_EQ(latents, 2);  // of pieces of 8 frames, two are whole
}

TEST(VideoEncodeStream, computes_in_f32_with_bf16_weights) {
  SmallEncoder small;
  test::TensorMap bf16 = test::converted(small.weights, at::kBFloat16);
  test::TensorSource narrow(bf16), wide(test::converted(bf16, at::kFloat));
  at::Tensor clip = random_frames(9);

  EncodedFrames got = encode_video(small.encoder, narrow, at::kFloat, clip);

  EXPECT_LE(test::error_of_max(got.mean, encode_video(small.encoder, wide, at::kFloat, clip).mean), 1e-5);
}

TEST(VideoEncodeStream, is_close_in_bf16_and_gives_f32) {
  SmallEncoder small;
  test::TensorSource source(test::converted(small.weights, at::kBFloat16));
  at::Tensor clip = random_frames(17);

  EncodedFrames got = encode_video(small.encoder, source, at::kBFloat16, clip);

  EncodedFrames want = small.whole(clip);
  EXPECT_EQ(got.mean.scalar_type(), at::kFloat);
  EXPECT_LE(test::error_of_max(got.mean, want.mean), 0.05);
  EXPECT_LE(test::error_of_max(got.logvar, want.logvar), 0.05);
}

TEST(VideoEncodeStream, keeps_the_log_variance_within_its_bounds) {
  SmallEncoder small;
  test::TensorMap weights = small.weights;
  weights["encoder.conv_out.conv.bias"] = at::full({17}, 1000.0);
  test::TensorSource high(weights);
  weights["encoder.conv_out.conv.bias"] = at::full({17}, -1000.0);
  test::TensorSource low(weights);
  at::Tensor picture = random_frames(1, 32, 32);

  EXPECT_EQ(encode_video(small.encoder, high, at::kFloat, picture).logvar.item<float>(), 20);
  EXPECT_EQ(encode_video(small.encoder, low, at::kFloat, picture).logvar.item<float>(), -30);
}

class VideoEncodeRefusal : public testing::Test {
 protected:
  // The message of a push of these frames after `before`, or "accepted".
  std::string refusal(const at::Tensor& frames, Last last, const at::Tensor& before = {}) {
    VideoEncodeStream stream(small.encoder, small.source, at::kFloat, [](const EncodedFrames&) {});
    if (before.defined()) stream.push(before, Last::no);
    try {
      stream.push(frames, last);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::internal ? error.what() : "another kind";
    }
    return "accepted";
  }

  SmallEncoder small;
};

TEST_F(VideoEncodeRefusal, names_a_clip_that_ends_within_a_group_of_frames) {
  for (std::int64_t frames : {0, 2, 8, 10, 16})
    EXPECT_EQ(refusal(random_frames(frames, 32, 32), Last::yes),
              fmt::format("video encoder: a clip of {} frames, not 8 k + 1", frames));
  EXPECT_EQ(refusal(random_frames(1, 32, 32), Last::yes, random_frames(9, 32, 32)),
            "video encoder: a clip of 10 frames, not 8 k + 1");
}

TEST_F(VideoEncodeRefusal, names_frames_of_another_shape) {
  EXPECT_EQ(refusal(at::zeros({1, 3, 1, 48, 64}), Last::yes),
            "video encoder: a picture of 64 x 48, no multiple of 32");
  EXPECT_EQ(refusal(at::zeros({1, 3, 1, 32, 64}), Last::no, at::zeros({1, 3, 1, 32, 32})),
            "video encoder: a picture of 64 x 32 in a clip of 32 x 32");
  EXPECT_EQ(refusal(at::zeros({1, 4, 1, 32, 32}), Last::yes),
            "video encoder: frames 1 x 4 x 1 x 32 x 32 of Float, not [1, 3, frames, height, width] of f32");
  EXPECT_THAT(refusal(at::zeros({2, 3, 1, 32, 32}), Last::yes), testing::HasSubstr("frames 2 x 3"));
  EXPECT_THAT(refusal(at::zeros({3, 32, 32}), Last::yes), testing::HasSubstr("frames 3 x 32 x 32"));
  EXPECT_THAT(refusal(at::zeros({1, 3, 1, 32, 32}, at::kBFloat16), Last::yes),
              testing::HasSubstr("of BFloat16"));
}

TEST_F(VideoEncodeRefusal, names_frames_after_the_end) {
  VideoEncodeStream stream(small.encoder, small.source, at::kFloat, [](const EncodedFrames&) {});
  stream.push(random_frames(1, 32, 32), Last::yes);

  EXPECT_THROW(stream.push(random_frames(1, 32, 32), Last::no), Error);
}

TEST(DownsampleStage, refuses_a_clip_that_ends_within_a_group) {
  SmallEncoder small;
  auto lease = small.source.acquire(small.encoder.encoder_group());
  DownsampleStage stage(small.encoder.down_blocks()[1].downsampler, small.encoder.config().down_blocks[1],
                        {.causal = true});

  EXPECT_THROW(stage.push(at::zeros({1, 32, 4, 8, 8}), Last::yes), Error);
}

}  // namespace
}  // namespace sluice::ltx2
