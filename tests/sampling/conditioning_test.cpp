#include "sampling/conditioning.h"

#include "sampling/euler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

constexpr SigmaStep kStep{.from = 0.909375F, .to = 0.725F};

at::Tensor random(std::uint64_t seed, at::IntArrayRef shape) {
  at::manual_seed(seed);
  return at::randn(shape);
}

// One row of tokens, each with its share of what is given.
at::Tensor mask_of(const std::vector<float>& shares) {
  return at::tensor(shares).view({1, -1, 1});
}

TEST(NoisedStart, mixes_by_what_is_given_of_each_token_and_by_the_level) {
  const at::Tensor start = at::full({1, 3, 1}, 2.0F), noise = at::full({1, 3, 1}, -2.0F);

  const at::Tensor x = noised_start(start, noise, mask_of({0, 0.5, 1}), 0.5);

  EXPECT_TRUE(at::equal(x.flatten(), at::tensor({0.0F, 1.0F, 2.0F})));
}

TEST(NoisedStart, is_the_noise_to_the_bit_where_nothing_is_given_at_level_1) {
  const at::Tensor start = random(1, {1, 4, 5}), noise = random(2, {1, 4, 5});

  EXPECT_TRUE(at::equal(noised_start(start, noise, mask_of({0, 0, 0, 0}), 1.0), noise));
  EXPECT_TRUE(at::equal(noised_start(start, noise, {}, 1.0), noise));
}

TEST(NoisedStart, is_what_is_given_to_the_bit_at_mask_1_and_any_level) {
  const at::Tensor start = random(1, {1, 2, 5}), noise = random(2, {1, 2, 5});

  for (const double level : {1.0, 0.909375, 0.25})
    EXPECT_TRUE(at::equal(noised_start(start, noise, mask_of({1, 1}), level), start)) << level;
}

TEST(NoisedStart, without_a_mask_is_that_of_a_mask_of_0) {
  const at::Tensor start = random(1, {1, 2, 5}), noise = random(2, {1, 2, 5});

  EXPECT_TRUE(at::allclose(noised_start(start, noise, {}, 0.725),
                           noised_start(start, noise, mask_of({0, 0}), 0.725), 0, 1e-6));
}

TEST(WithGiven, draws_a_prediction_to_what_is_given_by_its_share) {
  const Conditioning given{.mask = mask_of({0, 0.25, 1}), .clean = at::full({1, 3, 2}, 8.0F)};

  const at::Tensor x = with_given(at::full({1, 3, 2}, 4.0F), given);

  EXPECT_TRUE(at::equal(x.select(2, 0).flatten(), at::tensor({4.0F, 5.0F, 8.0F})));
}

TEST(WithGiven, changes_no_bit_where_nothing_is_given) {
  const at::Tensor x0 = random(3, {1, 4, 6});

  EXPECT_TRUE(at::equal(with_given(x0, {}), x0));
  EXPECT_TRUE(at::equal(with_given(x0, {.mask = mask_of({0, 0, 0, 0}), .clean = random(4, {1, 4, 6})}), x0));
}

TEST(WithGiven, freezes_a_given_token_to_the_bit_over_an_euler_step) {
  const Conditioning given{.mask = mask_of({1, 0, 1}), .clean = random(5, {1, 3, 7})};
  const at::Tensor x = noised_start(given.clean, random(6, {1, 3, 7}), given.mask, 1.0);

  const at::Tensor next = euler_step_to_x0(x, with_given(random(7, {1, 3, 7}), given), kStep);

  EXPECT_TRUE(at::equal(next.select(1, 0), given.clean.select(1, 0)));
  EXPECT_TRUE(at::equal(next.select(1, 2), given.clean.select(1, 2)));
  EXPECT_FALSE(at::allclose(next.select(1, 1), x.select(1, 1)));
}

TEST(TokenTimesteps, fall_with_what_is_given_of_a_token) {
  const at::Tensor times = token_timesteps(at::full({1}, 800.0F), mask_of({0, 0.25, 1}));

  EXPECT_TRUE(at::equal(times, at::tensor({800.0F, 600.0F, 0.0F}).view({1, 3})));
}

}  // namespace
}  // namespace sluice::sampling
