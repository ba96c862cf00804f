#include "sampling/schedule.h"

#include "support/fixture.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace sluice::sampling {
namespace {

using test::Fixture;
using testing::ElementsAre;
using testing::HasSubstr;

at::Tensor as_tensor(const std::vector<float>& values) {
  return at::tensor(at::ArrayRef<float>(values), at::kFloat);
}

template <typename Call>
std::string message_of(ErrorKind kind, Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class GivenList : public testing::TestWithParam<const char*> {};

TEST_P(GivenList, is_used_as_it_stands_bit_for_bit) {
  Fixture fixture(GetParam());
  auto sigmas = fixture.params().at("sigmas").get<std::vector<double>>();

  Schedule schedule = make_schedule(parse_scheduler_config(fixture.config().dump()), sigmas, 4096);

  EXPECT_TRUE(at::equal(as_tensor(schedule.sigmas), fixture.output("sigmas")));
  EXPECT_TRUE(at::equal(as_tensor(schedule.timesteps), fixture.output("timesteps")));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GivenList,
                         testing::Values("sampling/sigmas_distilled", "sampling/sigmas_stage_2"));

class DevSchedule : public testing::TestWithParam<const char*> {};

TEST_P(DevSchedule, equals_the_reference_bit_for_bit_for_every_token_count) {
  Fixture fixture(GetParam());
  SchedulerConfig config = parse_scheduler_config(fixture.config().dump());
  auto start = evenly_spaced_sigmas(fixture.params().at("num_inference_steps").get<std::int64_t>());
  auto token_counts = fixture.params().at("token_counts").get<std::vector<std::int64_t>>();

  for (std::size_t row = 0; row < token_counts.size(); ++row) {
    Schedule schedule = make_schedule(config, start, token_counts[row]);

    auto index = static_cast<std::int64_t>(row);
    EXPECT_TRUE(at::equal(as_tensor(schedule.sigmas), fixture.output("sigmas")[index])) << token_counts[row];
    EXPECT_TRUE(at::equal(as_tensor(schedule.timesteps), fixture.output("timesteps")[index]))
        << token_counts[row];
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, DevSchedule,
                         testing::Values("sampling/sigmas_dev_0", "sampling/sigmas_dev_1",
                                         "sampling/sigmas_dev_2"));

TEST(Schedule, of_a_distilled_model_ends_with_stage_2s_list_and_0) {
  Schedule whole = make_schedule(distilled_scheduler(), distilled_sigmas(), 1);
  Schedule stage_2 = make_schedule(distilled_scheduler(), stage_2_sigmas(), 1);

  EXPECT_EQ(whole.steps(), 8);
  EXPECT_THAT(stage_2.sigmas, ElementsAre(0.909375f, 0.725f, 0.421875f, 0.0f));
  EXPECT_THAT(std::vector<float>(whole.sigmas.end() - 4, whole.sigmas.end()), testing::Eq(stage_2.sigmas));
}

TEST(Schedule, of_a_distilled_list_through_the_dev_config_is_shifted_as_in_the_reference) {
  Schedule schedule = make_schedule(dev_scheduler(), distilled_sigmas(), 4096);

  // diffusers 0.42.1, FlowMatchEulerDiscreteScheduler with the dev config and mu = 2.05.
  EXPECT_THAT(schedule.sigmas, ElementsAre(1.0f, 0.995144606f, 0.990235925f, 0.985272825f, 0.98025471f,
                                           0.923978925f, 0.720582128f, 0.0999999642f, 0.0f));
}

TEST(Schedule, of_dev_ends_at_the_terminal_sigma) {
  Schedule schedule = make_schedule(dev_scheduler(), evenly_spaced_sigmas(30), 6144);

  EXPECT_EQ(schedule.sigmas.front(), 1.0f);
  EXPECT_NEAR(schedule.sigmas[29], 0.1, 1e-6);
  EXPECT_EQ(schedule.sigmas[30], 0.0f);
}

TEST(Schedule, of_one_step_is_pure_noise_to_clean) {
  EXPECT_THAT(make_schedule(distilled_scheduler(), evenly_spaced_sigmas(1), 1).sigmas,
              ElementsAre(1.0f, 0.0f));
}

TEST(Schedule, of_one_dev_step_is_refused_because_it_cannot_be_stretched) {
  auto one_step = [] { make_schedule(dev_scheduler(), evenly_spaced_sigmas(1), 4096); };

  EXPECT_THAT(message_of(ErrorKind::usage, one_step), HasSubstr("only sigma is 1 cannot end at 0.1"));
}

TEST(Schedule, with_a_static_shift_bends_towards_noise) {
  SchedulerConfig config{.shift = 3.0};

  EXPECT_THAT(make_schedule(config, std::vector{1.0, 0.5}, 1).sigmas, ElementsAre(1.0f, 0.75f, 0.0f));
}

TEST(Shift, goes_through_both_anchors_and_is_not_clamped) {
  EXPECT_NEAR(shift_for_tokens(dev_scheduler(), 1024), 0.95, 1e-12);
  EXPECT_NEAR(shift_for_tokens(dev_scheduler(), 4096), 2.05, 1e-12);
  EXPECT_NEAR(shift_for_tokens(dev_scheduler(), 14080), 5.625, 1e-3);
}

TEST(Sigmas, that_cannot_be_a_schedule_are_refused_with_their_place) {
  auto refuse = [](std::vector<double> sigmas) {
    return message_of(ErrorKind::usage, [&] { make_schedule(distilled_scheduler(), sigmas, 1); });
  };

  EXPECT_THAT(refuse({}), HasSubstr("no sigmas"));
  EXPECT_THAT(refuse({1.0, 0.5, 0.0}), HasSubstr("ends in 0"));
  EXPECT_THAT(refuse({1.5, 0.5}), HasSubstr("sigma 0 of the list is 1.5"));
  EXPECT_THAT(refuse({1.0, 0.5, 0.5}), HasSubstr("sigma 2 of the list is 0.5, not below 0.5"));
  EXPECT_THAT(refuse({1.0, std::nan("")}), HasSubstr("sigma 1 of the list is nan"));
}

TEST(Steps, below_1_are_refused) {
  EXPECT_THAT(message_of(ErrorKind::usage, [] { evenly_spaced_sigmas(0); }), HasSubstr("0 denoising steps"));
}

TEST(SchedulerConfigText, without_keys_has_the_references_defaults) {
  SchedulerConfig config = parse_scheduler_config("{}");

  EXPECT_FALSE(config.use_dynamic_shifting);
  EXPECT_EQ(config.base_shift, 0.5);
  EXPECT_EQ(config.max_shift, 1.15);
  EXPECT_EQ(config.base_image_seq_len, 256);
  EXPECT_EQ(config.max_image_seq_len, 4096);
  EXPECT_EQ(config.shift, 1.0);
  EXPECT_EQ(config.shift_terminal, std::nullopt);
}

TEST(SchedulerConfigText, is_read_whole_and_foreign_keys_are_left_alone) {
  SchedulerConfig config = parse_scheduler_config(R"({"_class_name": "FlowMatchEulerDiscreteScheduler",
    "use_dynamic_shifting": true, "base_shift": 0.95, "max_shift": 2.05, "base_image_seq_len": 1024,
    "max_image_seq_len": 4096, "shift": 1.0, "shift_terminal": 0.1, "time_shift_type": "exponential"})");

  EXPECT_TRUE(config.use_dynamic_shifting);
  EXPECT_EQ(config.base_shift, 0.95);
  EXPECT_EQ(config.base_image_seq_len, 1024);
  EXPECT_EQ(config.shift_terminal, 0.1);
}

TEST(SchedulerConfigText, that_asks_for_what_is_not_supported_is_refused_by_key) {
  auto refuse = [](std::string text) {
    return message_of(ErrorKind::bad_input, [&] { parse_scheduler_config(text); });
  };

  EXPECT_THAT(refuse(R"({"use_karras_sigmas": true})"), HasSubstr("use_karras_sigmas is true; only false"));
  EXPECT_THAT(refuse(R"({"time_shift_type": "linear"})"), HasSubstr("time_shift_type"));
  EXPECT_THAT(refuse(R"({"shift": "high"})"), HasSubstr(R"(shift is "high", not a number)"));
  EXPECT_THAT(refuse(R"({"shift_terminal": 1.0})"), HasSubstr("shift_terminal"));
  EXPECT_THAT(refuse(R"({"base_image_seq_len": 4096})"), HasSubstr("max_image_seq_len"));
  EXPECT_THAT(refuse("[1, 2"), HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace sluice::sampling
