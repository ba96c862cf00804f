// What two conditions at one place mean.
#include "pipeline/condition_plan.h"

#include <gmock/gmock.h>

namespace sluice::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> warnings_of(std::vector<FrameCondition> images) {
  Request request{.frames = 17, .images = std::move(images)};
  GivenMedia media;
  media.images.resize(request.images.size());
  std::vector<std::string> warnings;
  plan_conditions(request, media, {.compression = {.frames = 8, .pixels = 32}}, warnings);
  return warnings;
}

TEST(Conditions, of_which_two_begin_the_clip_say_which_one_counts) {
  EXPECT_THAT(
      warnings_of({{.file = "one.png"}, {.file = "other.png", .frame = -17}}),
      ElementsAre(HasSubstr("one.png and other.png both begin at frame 0: there the later one counts")));
}

TEST(Conditions, at_the_same_later_frame_add_up) {
  EXPECT_THAT(
      warnings_of(
          {{.file = "first.png"}, {.file = "one.png", .frame = 8}, {.file = "other.png", .frame = 8}}),
      IsEmpty());
}

}  // namespace
}  // namespace sluice::pipeline
