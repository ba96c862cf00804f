#include "models/ltx2/vocoder/vocoder.h"

#include "models/ltx2/vocoder/resample.h"
#include "support/antialiased_steps.h"
#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

void expect_matches(const Fixture& fixture, const VocoderResult& result) {
  EXPECT_TRUE(fixture.matches("low_rate", result.low_rate));
  EXPECT_TRUE(fixture.matches("inner_mel", result.inner_mel));
  EXPECT_TRUE(fixture.matches("residual", result.residual));
  EXPECT_TRUE(fixture.matches("skip", result.skip));
  EXPECT_TRUE(fixture.matches("waveform", result.waveform));
}

// The weights of a case, with the scale its params ask for.
test::TensorMap weights_of(const Fixture& fixture) {
  test::TensorMap tensors = test::read_tensors(fixture.weights_path());
  tensors["vocoder.conv_out.weight"] *= fixture.params().value("scale_vocoder_conv_out_weight", 1.0);
  return tensors;
}

TEST(Vocoder, gives_the_references_wave_at_every_step) {
  Fixture fixture("vocoder/bwe");
  Vocoder vocoder(VocoderConfig::parse(fixture.config()));
  auto source = test::open_weights(fixture.weights_path(), vocoder.groups(), Vocoder::ignore_rules());

  VocoderResult result = vocoder.run(*source, fixture.input("mel"));

  expect_matches(fixture, result);
}

TEST(Vocoder, clamps_the_first_wave_where_the_config_says_so) {
  Fixture fixture("vocoder/bwe_clamp");
  Vocoder vocoder(VocoderConfig::parse(fixture.config()));
  test::TensorSource source(weights_of(fixture));

  VocoderResult result = vocoder.run(source, fixture.input("mel"));

  expect_matches(fixture, result);
}

TEST(Vocoder, computes_in_f32_with_bf16_weights_and_a_bf16_mel) {
  Fixture fixture("vocoder/bwe");
  Vocoder vocoder(VocoderConfig::parse(fixture.config()));
  test::TensorMap bf16 = test::converted(weights_of(fixture), at::kBFloat16);
  test::TensorSource narrow(bf16), wide(test::converted(bf16, at::kFloat));
  at::Tensor mel = fixture.input("mel").to(at::kBFloat16);

  at::Tensor got = vocoder.run(narrow, mel).waveform;
  at::Tensor want = vocoder.run(wide, mel.to(at::kFloat)).waveform;

  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LE(test::error_of_max(got, want), 1e-5);
}

TEST(Vocoder, treats_each_clip_of_a_batch_alone) {
  Fixture fixture("vocoder/bwe");
  Vocoder vocoder(VocoderConfig::parse(fixture.config()));
  test::TensorSource source(weights_of(fixture));
  const at::Tensor& mel = fixture.input("mel");

  at::Tensor both = vocoder.run(source, at::cat({mel.flip(2), mel})).waveform;

  EXPECT_LE(test::error_of_max(both.narrow(0, 1, 1), fixture.output("waveform")), 1e-4);
}

// A first generator whose wave is no multiple of the hop: the wave is filled up for the inner mel, and cut
// again.
TEST(Vocoder, gives_exactly_the_samples_of_the_low_rate_wave) {
  Fixture fixture("vocoder/bwe");
  nlohmann::json config = fixture.config();
  config["upsample_factors"] = {5, 3, 1};  // 15 samples a frame, hop 10
  config["upsample_kernel_sizes"] = {11, 5, 3};
  Vocoder vocoder(VocoderConfig::parse(config));
  test::TensorMap tensors = weights_of(fixture);
  tensors["vocoder.upsamplers.1.weight"] = at::ones({16, 8, 5}) * 0.01;
  tensors["vocoder.upsamplers.2.weight"] = at::ones({8, 4, 3}) * 0.01;
  test::TensorSource source(tensors);

  VocoderResult result = vocoder.run(source, fixture.input("mel"));

  EXPECT_EQ(result.low_rate.size(2), 7 * 15);
  EXPECT_EQ(result.inner_mel.size(2), 11);
  EXPECT_EQ(result.residual.size(2), 11 * 30);
  EXPECT_EQ(result.waveform.size(2), 7 * 15 * 3);
}

TEST(AntialiasedSnake, gives_the_references_steps) {
  Fixture fixture("vocoder/activation");
  const nlohmann::json& config = fixture.config();
  AntialiasedSnake act;
  weights::ParameterGroup group{.name = "act", .parameters = {}};
  declare(weights::ParameterScope(group), act, config.at("channels").get<std::int64_t>(),
          {.ratio = config.at("antialias_ratio").get<std::int64_t>(),
           .kernel_size = config.at("antialias_kernel_size").get<std::int64_t>()});
  auto source = test::open_weights(fixture.weights_path(), {&group});
  auto lease = source->acquire(group);

  const test::AntialiasedSteps steps = test::antialiased_steps(act, fixture.input("x"));

  EXPECT_TRUE(fixture.matches("upsampled", steps.upsampled));
  EXPECT_TRUE(fixture.matches("activated", steps.activated));
  EXPECT_TRUE(fixture.matches("y", steps.result));
}

TEST(HannSincResampler, gives_the_references_filter_and_wave) {
  Fixture fixture("vocoder/resampler");
  const nlohmann::json& config = fixture.config();
  const std::int64_t ratio = config.at("output_sampling_rate").get<std::int64_t>() /
                             config.at("input_sampling_rate").get<std::int64_t>();

  EXPECT_TRUE(fixture.matches("filter", hann_sinc_filter(ratio)));
  EXPECT_TRUE(fixture.matches("y", hann_sinc_resample(fixture.input("x"), ratio)));
}

}  // namespace
}  // namespace sluice::ltx2
