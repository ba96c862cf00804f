#include "models/ltx2/video_vae/decode_memory.h"

#include "kernels/scratch.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

VideoVaeConfig wide_enough_config(const nlohmann::json& changes = nlohmann::json::object()) {
  nlohmann::json json = test::Fixture("video_vae/decode_f1").config();
  json["decoder_block_out_channels"] = {32, 64, 64, 128};
  json.update(changes);
  return VideoVaeConfig::parse(json);
}

struct Measured {
  std::int64_t state = 0;
  std::int64_t peak = 0;  // of tensors, state and all
};

constexpr DecodeDtypes kF32 = {.compute = at::kFloat, .weights = at::kFloat};
constexpr DecodeDtypes kBf16 = {.compute = at::kBFloat16, .weights = at::kBFloat16};
constexpr DecodeDtypes kWidened = {.compute = at::kFloat, .weights = at::kBFloat16};

Measured decode_and_measure(const VideoVaeConfig& config, const LatentClip& clip, DecodeDtypes dtypes,
                            PieceLimit limit, std::int64_t frames_a_push) {
  VideoDecoder decoder(config);
  test::TensorMap weights;
  for (const weights::ParameterGroup* group : decoder.groups())
    for (const weights::Parameter& parameter : group->parameters)
      weights[parameter.name] = (at::randn(parameter.shape) * 0.02).to(dtypes.weights);
  test::TensorSource source(weights);
  at::Tensor latents = at::randn({clip.batch, config.latent_channels, clip.frames, clip.height, clip.width})
                           .to(dtypes.compute);
  Measured measured;
  kernels::release_scratch();
  test::PeakAllocator allocator;
  VideoDecodeStream stream(
      decoder, source, [](const at::Tensor&) {}, limit);
  for (std::int64_t start = 0; start < clip.frames; start += frames_a_push) {
    const std::int64_t n = std::min(frames_a_push, clip.frames - start);
    stream.push(latents.narrow(2, start, n), start + n == clip.frames ? Last::yes : Last::no);
    measured.state = std::max(measured.state, stream.state_bytes());
  }
  measured.peak = allocator.peak();
  return measured;
}

TEST(VideoDecodeMemory, states_exactly_what_the_stream_remembers) {
  LatentClip clip{.batch = 2, .frames = 20, .height = 2, .width = 3};

  Measured measured = decode_and_measure(wide_enough_config(), clip, kF32, {.frames = 2}, 1);

  EXPECT_EQ(measured.state, video_decode_state(wide_enough_config(), clip, at::kFloat));
}

// The published decoder at 768 x 512: 240 M elements less the third of them that skip paths share with
// convolutions.
TEST(VideoDecodeMemory, keeps_a_third_less_than_a_history_and_a_queue_for_each_block) {
  VideoVaeConfig config = wide_enough_config({{"latent_channels", 128},
                                              {"decoder_block_out_channels", {256, 512, 512, 1024}},
                                              {"decoder_layers_per_block", {4, 6, 4, 2, 2}}});

  std::int64_t bytes = video_decode_state(config, {.frames = 16, .height = 16, .width = 24}, at::kBFloat16);

  EXPECT_LT(bytes, std::int64_t{2} * 240'000'000 * 72 / 100);
  EXPECT_GT(bytes, std::int64_t{2} * 240'000'000 * 64 / 100);
}

struct PeakCase {
  std::string name;
  nlohmann::json changes;
  DecodeDtypes dtypes;
  PieceLimit limit;
};

class VideoDecodePeak : public testing::TestWithParam<PeakCase> {};

TEST_P(VideoDecodePeak, is_planned_within_five_percent) {
  VideoVaeConfig config = wide_enough_config(GetParam().changes);
  LatentClip clip{.frames = 5, .height = 6, .width = 8};

  Measured measured = decode_and_measure(config, clip, GetParam().dtypes, GetParam().limit, clip.frames);

  auto planned = static_cast<double>(video_decode_tensors(config, clip, GetParam().dtypes, GetParam().limit));
  EXPECT_NEAR(static_cast<double>(measured.peak) / planned, 1, 0.05);
}

const nlohmann::json kUnchanged = nlohmann::json::object();

INSTANTIATE_TEST_SUITE_P(
    limits, VideoDecodePeak,
    testing::Values(PeakCase{"f32_single_frames", kUnchanged, kF32, {.frames = 1}},
                    PeakCase{"f32_four_frames", kUnchanged, kF32, {.frames = 4}},
                    PeakCase{"f32_small_pieces", kUnchanged, kF32, {.bytes = 4 << 20}},
                    PeakCase{"f32_large_pieces", kUnchanged, kF32, {.bytes = 32 << 20}},
                    PeakCase{"f32_whole", kUnchanged, kF32, PieceLimit::none()},
                    PeakCase{"widened_single_frames", kUnchanged, kWidened, {.frames = 1}},
                    PeakCase{"widened_small_pieces", kUnchanged, kWidened, {.bytes = 4 << 20}},
                    PeakCase{"bf16_four_frames", kUnchanged, kBf16, {.frames = 4}},
                    PeakCase{"bf16_small_pieces", kUnchanged, kBf16, {.bytes = 4 << 20}},
                    PeakCase{"f32_causal", {{"decoder_causal", true}}, kF32, {.frames = 4}},
                    PeakCase{
                        "f32_reflect", {{"decoder_spatial_padding_mode", "reflect"}}, kF32, {.frames = 4}}),
    [](const auto& info) { return info.param.name; });

TEST(VideoDecodeMemory, does_not_grow_with_the_clip) {
  LatentClip clip{.frames = 17, .height = 2, .width = 2};
  LatentClip longer{.frames = 33, .height = 2, .width = 2};

  std::int64_t peak = decode_and_measure(wide_enough_config(), clip, kF32, {.frames = 4}, 1).peak;
  std::int64_t longer_peak = decode_and_measure(wide_enough_config(), longer, kF32, {.frames = 4}, 1).peak;

  EXPECT_LE(static_cast<double>(longer_peak), static_cast<double>(peak) * 1.02);
}

TEST(FitPieces, takes_the_largest_pieces_that_stay_within_the_budget) {
  VideoVaeConfig config = wide_enough_config();
  LatentClip clip{.frames = 20, .height = 12, .width = 12};
  std::int64_t roomy = video_decode_memory(config, clip, kF32);
  std::int64_t budget = (roomy + video_decode_memory(config, clip, kF32, {.bytes = 0})) / 2;

  PieceLimit whole = fit_pieces(config, clip, kF32, roomy);
  PieceLimit tight = fit_pieces(config, clip, kF32, budget);

  EXPECT_EQ(whole.bytes, PieceLimit{}.bytes);
  EXPECT_LT(tight.bytes, whole.bytes);
  EXPECT_LE(video_decode_memory(config, clip, kF32, tight), budget);
}

TEST(FitPieces, refuses_a_budget_below_single_frames_with_both_numbers) {
  try {
    fit_pieces(wide_enough_config(), {.frames = 20, .height = 8, .width = 8}, kF32, 1 << 20);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), testing::HasSubstr("frame by frame, 1.0 MiB are left"));
  }
}

}  // namespace
}  // namespace sluice::ltx2
