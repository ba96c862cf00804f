#include "sampling/euler.h"

#include "sampling/finite.h"
#include "sampling/schedule.h"
#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace sluice::sampling {
namespace {

using test::Fixture;
using testing::HasSubstr;

TEST(EulerStep, and_the_way_through_x0_equal_the_reference) {
  Fixture fixture("sampling/euler_step");
  Schedule schedule = make_schedule(parse_scheduler_config(fixture.config().dump()),
                                    fixture.params().at("sigmas").get<std::vector<double>>(), 1);
  auto index = fixture.params().at("step_index").get<std::size_t>();
  SigmaStep sigma{.from = schedule.sigmas[index], .to = schedule.sigmas[index + 1]};
  const at::Tensor& sample = fixture.input("sample");

  at::Tensor x0 = velocity_to_x0(sample, fixture.input("velocity"), sigma.from);

  EXPECT_TRUE(at::equal(x0, fixture.output("denoised")));
  EXPECT_TRUE(at::equal(x0_to_velocity(sample, x0, sigma.from), fixture.output("velocity_again")));
  EXPECT_TRUE(at::equal(euler_step(sample, fixture.input("velocity"), sigma), fixture.output("prev_sample")));
  EXPECT_TRUE(fixture.matches("prev_sample", euler_step_to_x0(sample, x0, sigma)));
}

TEST(EulerStep, to_sigma_0_lands_on_x0) {
  at::Tensor sample = at::tensor({2.0f, -1.0f}), x0 = at::tensor({0.5f, 0.25f});

  EXPECT_TRUE(at::equal(euler_step_to_x0(sample, x0, {.from = 0.5f, .to = 0.0f}), x0));
}

TEST(EulerStep, leaves_its_inputs_alone) {
  at::Tensor sample = at::tensor({2.0f, -1.0f}), velocity = at::tensor({1.0f, 3.0f});

  euler_step(sample, velocity, {.from = 1.0f, .to = 0.5f});
  x0_to_velocity(sample, velocity, 0.5f);

  EXPECT_TRUE(at::equal(sample, at::tensor({2.0f, -1.0f})));
  EXPECT_TRUE(at::equal(velocity, at::tensor({1.0f, 3.0f})));
}

TEST(CheckFinite, accepts_finite_numbers_of_any_size) {
  EXPECT_NO_THROW(check_finite(at::tensor({0.0f, -0.0f, 3.4e38f, 1e-45f}), "latents"));
}

TEST(CheckFinite, names_tensor_count_and_first_place) {
  at::Tensor values = at::zeros({2, 3, 4});
  values[1][0][2] = std::numeric_limits<float>::quiet_NaN();
  values[1][2][3] = -std::numeric_limits<float>::infinity();

  try {
    check_finite(values, "video latents after step 4");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::non_finite);
    EXPECT_THAT(std::string(error.what()),
                HasSubstr("video latents after step 4: 2 of 24 values are not finite, "
                          "the first nan at [1, 0, 2]"));
  }
}

}  // namespace
}  // namespace sluice::sampling
