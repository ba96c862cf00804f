#include "sampling/latent_filters.h"

#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

at::Tensor random_latents(at::IntArrayRef shape, std::uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(shape);
}

TEST(Adain, equals_the_reference) {
  const test::Fixture fixture("latent_filters/adain_tone_map");

  EXPECT_TRUE(fixture.matches("adain_0.5", adain(fixture.input("latents"), fixture.input("reference"), 0.5)));
  EXPECT_TRUE(fixture.matches("adain_1.0", adain(fixture.input("latents"), fixture.input("reference"), 1)));
}

TEST(Adain, gives_each_channel_the_mean_and_deviation_of_the_reference) {
  const at::Tensor latents = random_latents({2, 3, 4, 6, 8}, 1);
  const at::Tensor reference = random_latents({2, 3, 4, 3, 4}, 2) * 3 + 5;

  const at::Tensor moved = adain(latents, reference, 1);

  EXPECT_TRUE(test::all_close(moved.mean({2, 3, 4}), reference.mean({2, 3, 4}), {.atol = 1e-5}));
  EXPECT_TRUE(test::all_close(moved.flatten(2).std(2), reference.flatten(2).std(2), {.atol = 1e-5}));
}

TEST(Adain, of_factor_0_changes_no_bit) {
  const at::Tensor latents = random_latents({1, 2, 2, 3, 3}, 3) * 1e6;

  EXPECT_TRUE(at::equal(adain(latents, random_latents({1, 2, 2, 3, 3}, 4), 0), latents));
}

TEST(Adain, moves_a_constant_channel_to_the_mean_and_stays_finite) {
  at::Tensor latents = random_latents({1, 2, 2, 3, 3}, 5);
  latents.select(1, 1).fill_(0.1);
  const at::Tensor reference = random_latents({1, 2, 2, 3, 3}, 6);

  const at::Tensor moved = adain(latents, reference, 1);

  EXPECT_TRUE(moved.isfinite().all().item<bool>());
  EXPECT_TRUE(test::all_close(moved.select(1, 1), reference.select(1, 1).mean().expand_as(moved.select(1, 1)),
                              {.atol = 1e-6}));
}

TEST(Adain, keeps_the_spread_where_the_reference_is_a_single_place) {
  const at::Tensor latents = random_latents({1, 1, 1, 2, 2}, 7);

  const at::Tensor moved = adain(latents, at::full({1, 1, 1, 1, 1}, 2.0F), 1);

  EXPECT_TRUE(test::all_close(moved, latents - latents.mean() + 2, {.atol = 1e-6}));
}

TEST(ToneMap, equals_the_reference) {
  const test::Fixture fixture("latent_filters/adain_tone_map");

  EXPECT_TRUE(fixture.matches("tone_map_0.3", tone_map(fixture.input("latents"), 0.3)));
  EXPECT_TRUE(fixture.matches("tone_map_1.0", tone_map(fixture.input("latents"), 1)));
}

TEST(ToneMap, of_ratio_0_changes_no_bit) {
  const at::Tensor latents = random_latents({1, 2, 2, 3, 3}, 8) * 100;

  EXPECT_TRUE(at::equal(tone_map(latents, 0), latents));
}

TEST(ToneMap, takes_more_from_large_values_and_keeps_signs) {
  const at::Tensor mapped = tone_map(at::tensor({0.1F, -10.0F}), 1);

  EXPECT_GT(mapped[0].item<float>() / 0.1F, 0.9F);
  EXPECT_NEAR(mapped[1].item<float>(), -10 * (1 - 0.6), 1e-3);
}

}  // namespace
}  // namespace sluice::sampling
