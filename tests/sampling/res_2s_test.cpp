#include "sampling/res_2s.h"

#include "support/fixture.h"
#include "support/throws_error.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

namespace sluice::sampling {
namespace {

using test::ThrowsError;
using testing::ElementsAre;
using testing::HasSubstr;

// A model whose prediction turns and shrinks with x: x0 = a x, so that dx/dlog(sigma) = (1 - a) x and
// x(sigma) = x(from) · (sigma / from)^(1 - a).
constexpr double kSlope = 0.4;

at::Tensor model(const at::Tensor& x) {
  return x * kSlope;
}

double solution(double x, double from, double to) {
  return x * std::pow(to / from, 1 - kSlope);
}

double error_after(int steps) {
  const double from = 1, to = 0.05;
  at::Tensor x = at::full({1}, 2.0, at::kDouble);
  for (int i = 0; i < steps; ++i) {
    const double begin = from * std::pow(to / from, static_cast<double>(i) / steps);
    const double end = from * std::pow(to / from, static_cast<double>(i + 1) / steps);
    const Res2sStep step = res_2s_step(begin, end);
    const at::Tensor x0 = model(x), middle = middle_sample(step, x, x0);
    const at::Tensor start = anchor(step, x, x0, middle);
    x = renoise(start, next_sample(step, start, x0, model(middle)), {}, begin, end, {.eta = 0});
  }
  return std::abs(x.item<double>() - solution(2, from, to));
}

TEST(Res2s, halving_the_steps_of_a_linear_equation_quarters_the_error) {
  for (int steps : {8, 16, 32}) {
    EXPECT_NEAR(error_after(steps) / error_after(2 * steps), 4, 0.5) << steps << " steps";
  }
}

TEST(Res2s, is_exact_where_the_prediction_is_constant) {
  const at::Tensor x = at::full({1}, 5.0, at::kDouble), x0 = at::full({1}, 2.0, at::kDouble);
  const Res2sStep step = res_2s_step(0.8, 0.2);

  EXPECT_NEAR(middle_sample(step, x, x0).item<double>(), 2 + 3 * step.middle / 0.8, 1e-14);
  EXPECT_NEAR(next_sample(step, x, x0, x0).item<double>(), 2 + 3 * 0.2 / 0.8, 1e-14);
}

TEST(Res2s, keeps_its_digits_in_a_step_of_almost_no_length) {
  const Res2sStep step = res_2s_step(0.5, 0.5 * (1 - 1e-9));

  EXPECT_NEAR(step.b1, 0, 1e-8);
  EXPECT_NEAR(step.b2, 1, 1e-8);
  EXPECT_NEAR(step.c / step.h, 0.5, 1e-8);
}

TEST(Res2s, moves_the_start_so_that_it_leads_through_the_renoised_middle) {
  at::manual_seed(1);
  const at::Tensor x = at::randn({4}), x0 = at::randn({4}), middle = at::randn({4});
  const Res2sStep step = res_2s_step(0.7, 0.6);

  const at::Tensor start = anchor(step, x, x0, middle);

  EXPECT_TRUE(test::all_close(middle_sample(step, start, x0), middle, {.atol = 1e-6}));
}

TEST(Res2s, leaves_the_start_of_long_steps_and_of_those_near_the_end) {
  const at::Tensor x = at::randn({4}), other = at::randn({4});

  EXPECT_TRUE(at::equal(anchor(res_2s_step(0.7, 0.4), x, other, other), x.to(at::kDouble)));
  EXPECT_TRUE(at::equal(anchor(res_2s_step(0.03, 0.025), x, other, other), x.to(at::kDouble)));
}

TEST(Res2s, renoises_to_the_sigma_that_a_step_leads_to) {
  at::manual_seed(2);
  const at::Tensor x0 = at::full({200000}, 3.0), e = at::randn({200000}), noise = at::randn({200000});
  auto at_sigma = [&](double sigma) { return x0 * (1 - sigma) + e * sigma; };

  const at::Tensor next = renoise(at_sigma(0.8), at_sigma(0.5), noise, 0.8, 0.5, {.eta = 0.6});

  EXPECT_NEAR(next.mean().item<double>(), 0.5 * 3, 0.01);
  EXPECT_NEAR(next.std().item<double>(), 0.5, 0.01);
}

TEST(Res2s, puts_a_small_sigma_before_a_0_alone) {
  EXPECT_THAT(res_2s_sigmas({1, 0.5, 0}), ElementsAre(1, 0.5, 0.0011, 0));
  EXPECT_THAT(res_2s_sigmas({1, 0.5}), ElementsAre(1, 0.5));
}

TEST(Res2s, refuses_steps_that_do_not_fall_or_end_at_0) {
  EXPECT_THAT([] { res_2s_step(0.5, 0.5); },
              ThrowsError(ErrorKind::usage, HasSubstr("from sigma 0.5 to 0.5")));
  EXPECT_THAT([] { res_2s_step(0.5, 0); }, ThrowsError(ErrorKind::usage, HasSubstr("to 0")));
}

TEST(NormalNoise, has_mean_0_and_deviation_1_in_each_row) {
  at::manual_seed(3);
  const at::Tensor noise = normal_noise(at::randn({2, 7, 5}) * 4 + 3);

  EXPECT_TRUE(test::all_close(noise.mean({1, 2}), at::zeros({2}), {.atol = 1e-12}));
  EXPECT_TRUE(test::all_close(noise.flatten(1).std(1), at::ones({2}), {.atol = 1e-12}));
}

}  // namespace
}  // namespace sluice::sampling
