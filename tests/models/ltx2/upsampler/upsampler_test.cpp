#include "models/ltx2/upsampler/upsampler.h"

#include "kernels/scratch.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace sluice::ltx2 {
namespace {

using test::Fixture;
using test::ThrowsError;
using testing::HasSubstr;

UpsamplerConfig config_of(const Fixture& fixture) {
  return UpsamplerConfig::parse(fixture.config(), "the fixture");
}

at::Tensor upsampled(const Fixture& fixture, at::ScalarType compute) {
  const LatentUpsampler model(config_of(fixture));
  const auto source = test::open_weights(fixture.weights_path(), model.groups(),
                                         LatentUpsampler::ignore_rules(model.config()));
  return model.forward(*source, fixture.input("latents"), compute);
}

class UpsamplerFixture : public testing::TestWithParam<std::string> {};

TEST_P(UpsamplerFixture, equals_the_reference) {
  const Fixture fixture("latent_upsampler/" + GetParam());

  EXPECT_TRUE(fixture.matches("upsampled", upsampled(fixture, at::kFloat)));
}

TEST_P(UpsamplerFixture, is_near_the_reference_in_bf16) {
  const Fixture fixture("latent_upsampler/" + GetParam());

  const at::Tensor got = upsampled(fixture, at::kBFloat16);

  EXPECT_EQ(got.scalar_type(), at::kFloat);
  EXPECT_LT(test::error_of_max(got, fixture.output("upsampled")), 0.03);
}

TEST_P(UpsamplerFixture, has_the_size_that_was_foretold) {
  const Fixture fixture("latent_upsampler/" + GetParam());
  const LatentUpsampler model(config_of(fixture));
  const at::Tensor &in = fixture.input("latents"), &out = fixture.output("upsampled");

  EXPECT_EQ(model.upsampled({in.size(2), in.size(3), in.size(4)}),
            (LatentSize{out.size(2), out.size(3), out.size(4)}));
}

INSTANTIATE_TEST_SUITE_P(Layouts, UpsamplerFixture,
                         testing::Values("x2", "rational", "rational_x2", "rational_x1_5", "temporal_x2",
                                         "spatial_temporal_x2"),
                         [](const auto& info) { return info.param; });

TEST(LatentUpsampler, norms_over_the_whole_clip) {
  at::manual_seed(1);
  const Fixture fixture("latent_upsampler/x2");
  const LatentUpsampler model(config_of(fixture));
  const auto source = test::open_weights(fixture.weights_path(), model.groups());
  // Convolutions alone reach six frames.
  const at::Tensor first = at::randn({1, 4, 16, 4, 6}), last = at::randn({1, 4, 3, 4, 6});
  auto first_frame = [&](double scale_of_last) {
    return model.forward(*source, at::cat({first, last * scale_of_last}, 2), at::kFloat).select(2, 0);
  };

  EXPECT_GT(test::error_of_max(first_frame(5), first_frame(1)), 0.01);
}

TEST(LatentUpsampler, takes_weights_group_by_group_in_the_order_of_a_pass) {
  const LatentUpsampler model({.in_channels = 4, .mid_channels = 32, .blocks = 2, .spatial = true});

  std::vector<std::string> names;
  for (const weights::ParameterGroup* group : model.groups()) names.push_back(group->name);

  EXPECT_THAT(names,
              testing::ElementsAre("initial_conv", "res_blocks.0", "res_blocks.1", "upsampler",
                                   "post_upsample_res_blocks.0", "post_upsample_res_blocks.1", "final_conv"));
}

TEST(LatentUpsampler, refuses_latents_of_another_width) {
  const LatentUpsampler model({.in_channels = 4, .mid_channels = 32, .blocks = 1, .spatial = true});
  test::TensorSource source({});

  EXPECT_THAT(
      [&] {
        model.forward(source, at::zeros({1, 5, 2, 3, 3}), at::kFloat);
      },
      ThrowsError(ErrorKind::internal, HasSubstr("latents are [1, 5, 2, 3, 3], not [1, 4, F, H, W]")));
}

struct MemoryCase {
  std::string name;
  UpsamplerConfig config;
  LatentSize size;
  at::ScalarType compute = at::kFloat;
};

class UpsampleMemory : public testing::TestWithParam<MemoryCase> {};

TEST_P(UpsampleMemory, is_planned_within_ten_percent) {
  const LatentUpsampler model(GetParam().config);
  test::TensorMap weights;
  for (const weights::ParameterGroup* group : model.groups())
    for (const weights::Parameter& parameter : group->parameters)
      weights[parameter.name] = at::randn(parameter.shape) * 0.02;
  test::TensorSource source(weights);
  const LatentSize& size = GetParam().size;
  kernels::release_scratch();
  test::PeakAllocator allocator;

  model.forward(source, at::randn({1, GetParam().config.in_channels, size.frames, size.height, size.width}),
                GetParam().compute);

  const auto planned = static_cast<double>(upsample_memory(GetParam().config, size, GetParam().compute));
  EXPECT_NEAR(static_cast<double>(allocator.peak()) / planned, 1, 0.1);
}

constexpr UpsamplerConfig kX2 = {.in_channels = 16, .mid_channels = 32, .blocks = 1, .spatial = true};

UpsamplerConfig with(bool spatial, bool temporal) {
  UpsamplerConfig config = kX2;
  config.spatial = spatial;
  config.temporal = temporal;
  return config;
}

UpsamplerConfig rational(std::int64_t num, std::int64_t den) {
  UpsamplerConfig config = kX2;
  config.rational = true;
  config.scale_num = num;
  config.scale_den = den;
  return config;
}

INSTANTIATE_TEST_SUITE_P(Layouts, UpsampleMemory,
                         testing::Values(MemoryCase{"x2", kX2, {12, 16, 24}},
                                         MemoryCase{"x2_bf16", kX2, {12, 16, 24}, at::kBFloat16},
                                         MemoryCase{"small", kX2, {1, 4, 4}},
                                         MemoryCase{"temporal", with(false, true), {9, 20, 20}},
                                         MemoryCase{"spatial_temporal", with(true, true), {5, 12, 16}},
                                         MemoryCase{"rational", rational(3, 2), {6, 20, 24}},
                                         MemoryCase{"rational_x4", rational(4, 1), {4, 10, 12}}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::ltx2
