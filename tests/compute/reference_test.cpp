// Whole runs against the reference's pipeline (tests/fixtures/generate/end_to_end.py).
#include "compute/frames.h"
#include "compute/world.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cmath>

namespace sluice::test {
namespace {

using nlohmann::json;

class EndToEnd : public ::testing::TestWithParam<const char*> {
 protected:
  EndToEnd()
      : case_(fs::path(SLUICE_SOURCE_DIR "/tests/fixtures/end_to_end") / GetParam()),
        request_(json::parse(file_content(case_ / "request.json"))),
        expected_(read_values(case_ / "expected.safetensors")) {}

  Arguments flags() const {
    Arguments flags = {
        "--inject", case_ / "inject.safetensors", "--compute-dtype", "f32", "--no-audio", "--threads", "1"};
    for (const auto& [flag, value] : request_.at("flags").items()) flags = with(flags, {flag, value});
    return flags;
  }

  testing::AssertionResult matches(const std::string& name, const Values& got) const {
    const double atol = request_.at("tolerance").at("atol"), rtol = request_.at("tolerance").at("rtol");
    const Values& want = expected_.at(name);
    if (got.size() != want.size())
      return testing::AssertionFailure() << name << " has " << got.size() << " values, not " << want.size();
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::abs(double{got[i]} - want[i]) <= atol + rtol * std::abs(want[i]))
        continue;  // NaN does not pass
      return testing::AssertionFailure() << name << "[" << i << "] is " << got[i] << ", not " << want[i];
    }
    return testing::AssertionSuccess();
  }

  fs::path case_;
  json request_;
  std::map<std::string, Values> expected_;
  TemporaryFolder folder_;
};

TEST_P(EndToEnd, every_step_and_every_frame_is_the_references) {
  const Outcome outcome = run(
      with(with({"generate", "--model", fixture_file()}, flags()),
           {"--trace", folder_ / "trace", "--frames-dir", folder_ / "frames", "-o", folder_ / "clip.mp4"}));

  ASSERT_THAT(outcome, Succeeds());
  auto trace = read_values(folder_ / "trace");
  EXPECT_EQ(trace.size() + 1, expected_.size());  // all but the frames
  for (const auto& [name, values] : trace) EXPECT_TRUE(matches(name, values));
  Values frames;
  for (const Frame& frame : read_frames(folder_ / "frames")) {
    EXPECT_EQ(frame.width, 96);
    EXPECT_EQ(frame.height, 64);
    frames.insert(frames.end(), frame.pixels.begin(), frame.pixels.end());
  }
  const Values& want = expected_.at("frames");
  ASSERT_EQ(frames.size(), want.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    ASSERT_LE(std::abs(frames[i] - want[i]), 1) << "value " << i;  // a rounding to bytes may tip over
    different += frames[i] != want[i];
  }
  EXPECT_LT(different, frames.size() / 1000);
}

TEST_P(EndToEnd, the_folder_with_the_schedulers_config_needs_no_variant) {
  copy_fixture_folder(folder_ / "model");
  fs::create_directory(folder_ / "model/scheduler");
  fs::copy(case_ / "scheduler_config.json", folder_ / "model/scheduler");
  request_["flags"].erase("--variant");

  const Outcome outcome =
      run(with(with({"generate", "--model", folder_ / "model"}, flags()), {"--trace", folder_ / "trace"}));

  ASSERT_THAT(outcome, Succeeds());
  for (const auto& [name, values] : read_values(folder_ / "trace")) EXPECT_TRUE(matches(name, values));
}

INSTANTIATE_TEST_SUITE_P(Case, EndToEnd, ::testing::Values("distilled", "dev_guided"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::test
