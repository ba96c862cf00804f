#include "sampling/guidance.h"

#include "sampling/euler.h"
#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

using test::Fixture;

class GuidanceFixture : public testing::TestWithParam<const char*> {};

TEST_P(GuidanceFixture, equals_the_reference) {
  Fixture fixture(GetParam());
  const auto& params = fixture.params();
  const GuidanceScales scales{.cfg = params.at("guidance_scale"),
                              .stg = params.at("stg_scale"),
                              .modality = params.at("modality_scale"),
                              .rescale = params.at("guidance_rescale")};
  const auto sigma = params.at("sigma").get<float>();
  const at::Tensor& sample = fixture.input("sample");
  auto x0 = [&](const char* name) { return velocity_to_x0(sample, fixture.input(name), sigma); };
  const Denoised denoised{.positive = x0("velocity"),
                          .negative = x0("velocity_negative"),
                          .perturbed = x0("velocity_stg"),
                          .isolated = x0("velocity_modality")};

  at::Tensor guided = guide(denoised, scales);

  EXPECT_TRUE(fixture.matches("guided", combine(denoised, scales)));
  EXPECT_TRUE(fixture.matches("denoised", guided));
  EXPECT_TRUE(fixture.matches("velocity", x0_to_velocity(sample, guided, sigma)));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GuidanceFixture,
                         testing::Values("sampling/guidance_cfg", "sampling/guidance_cfg_rescale",
                                         "sampling/guidance_stg", "sampling/guidance_modality",
                                         "sampling/guidance_dev_video", "sampling/guidance_dev_audio",
                                         "sampling/guidance_hq_audio", "sampling/guidance_none"));

TEST(GuidancePasses, of_a_distilled_model_are_one) {
  EXPECT_EQ(needed_passes({}).forward_passes(), 1);
}

TEST(GuidancePasses, run_if_either_modality_needs_them) {
  GuidancePasses passes = needed_passes({.video = {.cfg = 3.0}, .audio = {.stg = 1.0, .modality = 3.0}});

  EXPECT_TRUE(passes.negative);
  EXPECT_TRUE(passes.perturbed);
  EXPECT_TRUE(passes.isolated);
  EXPECT_EQ(passes.forward_passes(), 4);
}

TEST(GuidancePasses, do_not_run_for_an_explicit_0) {
  GuidancePasses passes = needed_passes({.video = {.cfg = 0.0, .modality = 0.0}, .audio = {.cfg = 0.0}});

  EXPECT_EQ(passes.forward_passes(), 1);
}

TEST(Guidance, without_predictions_to_leave_is_the_positive_one) {
  at::Tensor positive = at::arange(12, at::kFloat).view({1, 3, 4});

  EXPECT_TRUE(at::equal(guide({.positive = positive}, {.cfg = 3.0, .stg = 1.0, .modality = 3.0}), positive));
}

TEST(Guidance, leaves_its_inputs_alone) {
  at::Tensor positive = at::arange(12, at::kFloat).view({1, 3, 4}), negative = at::ones({1, 3, 4});
  at::Tensor positive_before = positive.clone(), negative_before = negative.clone();

  guide({.positive = positive, .negative = negative}, {.cfg = 3.0, .rescale = 0.7});

  EXPECT_TRUE(at::equal(positive, positive_before));
  EXPECT_TRUE(at::equal(negative, negative_before));
}

TEST(Rescale, whole_gives_each_batch_row_its_own_deviation) {
  at::Tensor positive = at::tensor({1.0f, 2.0f, 3.0f, 10.0f, 20.0f, 30.0f}).view({2, 3, 1});
  at::Tensor guided = at::tensor({2.0f, 4.0f, 6.0f, 1.0f, 2.0f, 3.0f}).view({2, 3, 1});

  at::Tensor rescaled = rescale_to(positive, guided, 1.0);

  EXPECT_TRUE(at::allclose(at::std(rescaled, {1, 2}, at::Scalar(1)), at::tensor({1.0f, 10.0f})));
}

}  // namespace
}  // namespace sluice::sampling
