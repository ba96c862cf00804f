#include "pipeline/run_plan.h"

#include "pipeline/remedy.h"
#include "pipeline/world.h"

#include <sluice/error.h>

#include <gmock/gmock.h>

namespace sluice::pipeline {
namespace {

using ::testing::HasSubstr;

// The demo's model and a request for it, as plan_run() takes them.
class RunPlanning : public ::testing::Test {
 protected:
  RunPlan planned(Bytes total, Bytes program = MiB(60)) {
    settings_ = settle(request_, models_, {media_});
    return plan_run(inputs(), {.total = total, .source = "asked for"}, program);
  }
  RunInputs inputs() const {
    return {.models = models_,
            .encoder = &encoder_,
            .request = request_,
            .settings = settings_,
            .settle = {media_},
            .prompt_tokens = {20}};
  }

  Request request_ = test::demo_request();
  ModelSet models_ = open_models(test::demo_model(), {});
  TextEncoder encoder_ = open_text_encoder(test::demo_text_encoder());
  GivenMedia media_;
  Settings settings_ = settle(request_, models_, {media_});
};

TEST_F(RunPlanning, ComputesInPlaceWhereEverythingFits) {
  const RunPlan plan = planned(GiB(4));
  ASSERT_EQ(plan.phases.size(), 4U);
  EXPECT_EQ(plan.too_large(), nullptr);
  for (const PhasePlan& phase : plan.phases) {
    for (const ComponentStaging& staging : phase.staging) {
      EXPECT_EQ(staging.residence, Residence::mapped) << staging.component;
      EXPECT_EQ(staging.anonymous, 0U);
    }
  }
}

TEST_F(RunPlanning, FitsEveryLimitOrSaysThatItDoesNot) {
  bool streamed = false, refused = false;
  for (Bytes total = MiB(62); total < MiB(260); total += MiB(2)) {
    const RunPlan plan = planned(total);
    refused = refused || plan.too_large();
    for (const PhasePlan& phase : plan.phases) {
      EXPECT_TRUE(plan.too_large() || plan.memory(phase) <= total) << phase.name;
      for (const ComponentStaging& staging : phase.staging)
        streamed = streamed || staging.residence == Residence::disk;
    }
  }
  EXPECT_TRUE(refused) << "the program alone takes nearly 62 MiB";
  EXPECT_TRUE(streamed) << "somewhere between, weights have to come from disk";
}

TEST_F(RunPlanning, StreamsEverythingThatIsAskedFromDisk) {
  request_.stage_from = StageFrom::disk;
  const RunPlan plan = planned(GiB(4));
  const ComponentStaging& transformer = plan.find("denoise")->staging.front();
  EXPECT_EQ(transformer.residence, Residence::disk);
  EXPECT_EQ(transformer.plan.large_resident(), 0U);
  EXPECT_GT(plan.find("denoise")->bytes_per_pass(), 0U);
  EXPECT_EQ(plan.find("denoise")->bytes_read(),
            transformer.bytes_once + 7 * plan.find("denoise")->bytes_per_pass())
      << "eight steps";
}

TEST_F(RunPlanning, KeepsAsManyBlocksAsAreAskedFor) {
  request_.stage_from = StageFrom::disk;
  request_.resident_blocks = 1;
  const ComponentStaging staging = planned(GiB(4)).find("denoise")->staging.front();
  EXPECT_EQ(staging.plan.large_resident(), 1U);
  EXPECT_LT(staging.bytes_again, staging.bytes_once);
}

TEST_F(RunPlanning, ReadsOnceWhatIsKeptInMemory) {
  request_.stage_from = StageFrom::memory;
  const RunPlan plan = planned(GiB(4));
  const PhasePlan& denoise = *plan.find("denoise");
  EXPECT_EQ(denoise.staging.front().residence, Residence::memory);
  EXPECT_EQ(denoise.bytes_per_pass(), 0U);
  EXPECT_GE(denoise.anonymous(), denoise.staging.front().bytes_once);
}

TEST_F(RunPlanning, MapsThroughAWindowWhereAMappingIsAskedForFromDisk) {
  request_.stage_from = StageFrom::disk;
  request_.read_backend = ReadBackend::mmap;
  const ComponentStaging staging = planned(GiB(4)).find("denoise")->staging.front();
  EXPECT_EQ(staging.residence, Residence::window);
  EXPECT_EQ(staging.anonymous, 0U);
}

TEST_F(RunPlanning, LeavesOutPhasesThatAreNotAskedFor) {
  RunInputs only_video = inputs();
  only_video.prompt_tokens.clear();
  only_video.sound = false;
  const RunPlan plan = plan_run(only_video, {.total = GiB(4)}, 0);
  ASSERT_EQ(plan.phases.size(), 1U);
  EXPECT_EQ(plan.phases.front().name, "decode video");
}

TEST_F(RunPlanning, FindsTheSmallestChangeAndItFits) {
  request_.width = request_.height = 512;
  request_.frames = 121;
  const RunPlan plan = planned(MiB(115));
  ASSERT_NE(plan.too_large(), nullptr);
  const auto remedy = smallest_change(inputs(), plan.budget, plan.program);
  ASSERT_TRUE(remedy);
  EXPECT_EQ(remedy->plan.too_large(), nullptr);
  EXPECT_THAT(remedy->flags, testing::AnyOf(HasSubstr("--frames"), HasSubstr("--width")));
}

TEST_F(RunPlanning, ReleasesWhatARequestHoldsBackBeforeAnythingElse) {
  request_.width = request_.height = 256;
  request_.frames = 121;
  const Bytes streamed = planned(GiB(4)).peak();
  request_.decode = DecodeMode::whole;
  ASSERT_GT(planned(GiB(4)).peak(), streamed + MiB(1));
  const RunPlan plan = planned(streamed + MiB(40));
  ASSERT_NE(plan.too_large(), nullptr);
  const auto remedy = smallest_change(inputs(), plan.budget, plan.program);
  ASSERT_TRUE(remedy);
  EXPECT_THAT(remedy->flags, HasSubstr("--decode auto"));
  EXPECT_EQ(remedy->loses, "nothing");
}

TEST_F(RunPlanning, RefusesWithPhaseNeedLimitAndRemedy) {
  const RunPlan plan = planned(MiB(61));
  try {
    refuse(inputs(), plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::does_not_fit);
    EXPECT_THAT(error.what(), HasSubstr("phase 'text'"));
    EXPECT_THAT(error.what(), HasSubstr("61.0 MiB"));
    EXPECT_THAT(error.what(), HasSubstr("60.0 MiB held by the program"));
    EXPECT_THAT(error.hint(), HasSubstr("not even the smallest clip fits"));
  }
}

TEST(MemoryBudget, IsWhatWasAskedForOrWhatThereIs) {
  EXPECT_EQ(memory_budget(GiB(2), GiB(1), GiB(4)).total, GiB(2));
  EXPECT_EQ(memory_budget(std::nullopt, GiB(1), GiB(4)).total, GiB(5)) << "what is held counts";
  const MemoryBudget less = memory_budget(GiB(10), GiB(1), GiB(4));
  EXPECT_EQ(less.total, GiB(5));
  EXPECT_THAT(less.source, HasSubstr("10.0 GiB were asked for"));
}

}  // namespace
}  // namespace sluice::pipeline
