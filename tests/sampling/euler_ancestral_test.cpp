#include "sampling/euler_ancestral.h"

#include "support/fixture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::sampling {
namespace {

at::Tensor values(std::uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({2, 50, 8});
}

TEST(AncestralStep, without_eta_is_eulers_and_looks_at_no_noise) {
  const at::Tensor sample = values(1), x0 = values(2);
  const SigmaStep sigma{.from = 0.9F, .to = 0.6F};

  const at::Tensor next = ancestral_step_to_x0(sample, x0, {}, sigma, {.eta = 0});

  EXPECT_TRUE(test::all_close(next, euler_step_to_x0(sample, x0, sigma), {.atol = 1e-6}));
}

TEST(AncestralStep, to_sigma_0_lands_on_x0_and_looks_at_no_noise) {
  const at::Tensor x0 = values(3);

  EXPECT_TRUE(at::equal(ancestral_step_to_x0(values(4), x0, {}, {.from = 0.4F, .to = 0}), x0));
}

// With x = (1 - from) x0 + from e, the result is (1 - to) x0 + to (a mix of e and the noise of unit length).
TEST(AncestralStep, stands_at_the_next_sigma) {
  at::manual_seed(5);
  const at::Tensor x0 = at::full({200000}, 3.0F), e = at::randn({200000}), noise = at::randn({200000});
  const SigmaStep sigma{.from = 0.8F, .to = 0.5F};

  const at::Tensor next = ancestral_step_to_x0(x0 * 0.2 + e * 0.8, x0, noise, sigma, {.eta = 0.7});

  const at::Tensor rest = next - x0 * 0.5;
  EXPECT_NEAR(rest.mean().item<double>(), 0, 0.01);
  EXPECT_NEAR(rest.std().item<double>(), 0.5, 0.005);
}

TEST(AncestralStep, scales_the_noise_alone_by_s_noise) {
  const at::Tensor sample = values(6), x0 = values(7), noise = values(8);
  const SigmaStep sigma{.from = 1.0F, .to = 0.9F};
  auto step = [&](double s_noise) {
    return ancestral_step_to_x0(sample, x0, noise, sigma, {.eta = 1, .s_noise = s_noise});
  };

  EXPECT_TRUE(test::all_close(step(2) - step(1), step(1) - step(0), {.atol = 1e-5}));
  EXPECT_GT((step(1) - step(0)).abs().max().item<double>(), 0.1);
}

TEST(AncestralStep, leaves_its_inputs_alone) {
  const at::Tensor sample = values(9), x0 = values(10), noise = values(11);

  ancestral_step_to_x0(sample, x0, noise, {.from = 0.7F, .to = 0.3F});

  EXPECT_TRUE(at::equal(sample, values(9)));
  EXPECT_TRUE(at::equal(x0, values(10)));
  EXPECT_TRUE(at::equal(noise, values(11)));
}

}  // namespace
}  // namespace sluice::sampling
