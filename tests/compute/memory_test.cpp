// Where weights are and how much memory there may be, on the command line.
#include "compute/world.h"

#include <sluice/units.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json report_of(const fs::path& file) {
  return json::parse(std::ifstream(file));
}

const json& weights_of(const json& report, const std::string& phase) {
  for (const json& row : report.at("phases")) {
    if (row.at("name") == phase) return row.at("planned").at("weights").at(0);
  }
  throw std::runtime_error("no phase " + phase);
}

// A clip of the demo's model in another size.
Arguments large_clip() {
  return {"--model",   demo_model(), "--text-encoder", demo_text_encoder(),
          "--variant", "distilled",  "--prompt",       "a red circle",
          "--width",   "512",        "--height",       "512",
          "--frames",  "121",        "--memory-limit", "120MiB"};
}

// The words behind "try: " up to what follows the flags.
Arguments flags_in(const std::string& hint, const std::string& end) {
  std::istringstream words(hint.substr(0, hint.find(end)));
  Arguments flags;
  for (std::string word; words >> word;) flags.push_back(word);
  return flags;
}

TEST(Staging, GivesTheSameLatentsFromEverywhere) {
  TemporaryFolder folder;
  int count = 0;
  const std::vector<Arguments> ways = {
      {},
      {"--stage-from", "memory"},
      {"--stage-from", "device"},
      {"--stage-from", "disk"},
      {"--stage-from", "disk", "--resident-blocks", "1"},
      {"--stage-from", "disk", "--read-backend", "mmap"},
      {"--stage-from", "disk", "--read-backend", "uring"},
      {"--read-backend", "pread", "--memory-limit", "400MiB"},
      {"--attention-budget", "256KiB"},
  };
  for (const Arguments& way : ways) {
    const fs::path file = folder / ("latents" + std::to_string(count++));
    ASSERT_THAT(run(with(with(demo_clip(), {"--latents", file}), way)), Succeeds())
        << testing::PrintToString(way);
    EXPECT_TRUE(same_bytes(folder / "latents0", file)) << testing::PrintToString(way);
  }
}

TEST(Staging, ReadsEveryBlockOncePerStepAndSaysSo) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(),
                       {"--latents", folder / "l", "--stage-from", "disk", "--report", folder / "report"})),
              Succeeds());
  for (const json& phase : report_of(folder / "report").at("phases")) {
    if (phase.at("name") != "denoise") continue;
    EXPECT_EQ(phase.at("planned").at("weights").at(0).at("stage_from"), "disk");
    EXPECT_LE(phase.at("bytes_read").get<double>(),
              1.05 * phase.at("planned").at("bytes_read").get<double>());
    EXPECT_GE(phase.at("bytes_read"), phase.at("planned").at("bytes_read"));
  }
}

TEST(Staging, KeepsTheBlocksThatAreAskedFor) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), {"--latents", folder / "l", "--stage-from", "disk", "--resident-blocks",
                                     "2", "--report", folder / "report"})),
              Succeeds());
  EXPECT_EQ(weights_of(report_of(folder / "report"), "denoise").at("resident_blocks"), 2);
}

TEST(Staging, RefusesFlagsThatContradictEachOther) {
  const Outcome outcome =
      run(with(demo_clip(), {"--stage-from", "memory", "--resident-blocks", "2", "--latents", "l"}));
  EXPECT_THAT(outcome, Refuses(2, HasSubstr("contradict"), HasSubstr("--stage-from disk")));
}

TEST(MemoryLimit, RefusesBeforeReadingWhatDoesNotFit) {
  TemporaryFolder folder;
  const Outcome outcome = run(with(demo_clip(), {"--memory-limit", "50MiB", "-o", folder / "clip.mp4"}));
  EXPECT_THAT(outcome, Refuses(4, HasSubstr("the limit is 50.0 MiB (asked for)"), HasSubstr("fits")));
  EXPECT_THAT(folder.names(), testing::IsEmpty());
}

TEST(MemoryLimit, NamesFlagsThatReallyFit) {
  TemporaryFolder folder;
  const Arguments large = with(with({"generate"}, large_clip()), {"--no-audio", "-o", folder / "clip.mp4"});
  const Outcome refused = run(large);
  ASSERT_EQ(refused.code, 4) << refused.err;
  const std::size_t hint = refused.err.find("try: ");
  ASSERT_NE(hint, std::string::npos) << refused.err;
  const Arguments flags = flags_in(refused.err.substr(hint + 5), " fits");
  ASSERT_FALSE(flags.empty());
  // CLI11 refuses a flag that is given twice: leave out the ones that are replaced.
  Arguments replaced;
  for (std::size_t i = 0; i < large.size(); ++i) {
    if (std::ranges::find(flags, large[i]) != flags.end()) {
      ++i;
      continue;
    }
    replaced.push_back(large[i]);
  }
  EXPECT_THAT(run(with(replaced, flags)), Succeeds());
}

TEST(Plan, SaysWhatWouldFit) {
  const Outcome outcome = run(with({"plan", "--json", "--no-timing", "--no-audio"}, large_clip()));
  ASSERT_THAT(outcome, Succeeds());
  const json plan = json::parse(outcome.out);
  EXPECT_FALSE(plan.at("fits").get<bool>());
  EXPECT_LE(plan.at("smallest_change").at("peak").get<Bytes>(), MiB(120));
}

TEST(Plan, TellsTheTimeOfEveryPhase) {
  const Outcome outcome = run(with({"plan", "--json", "--model", demo_model()}, demo_flags()));
  ASSERT_THAT(outcome, Succeeds());
  const json plan = json::parse(outcome.out);
  for (const json& phase : plan.at("phases"))
    EXPECT_GT(phase.at("seconds").get<double>(), 0) << phase.at("name");
}

TEST(Recommend, AnswersWithAProfileAndFlags) {
  const Outcome outcome = run(with({"recommend", "--json", "--model", demo_model()}, demo_flags()));
  ASSERT_THAT(outcome, Succeeds());
  const json answer = json::parse(outcome.out);
  EXPECT_EQ(answer.at("profile"), "cpu");
  EXPECT_THAT(answer.at("flags").get<std::string>(), HasSubstr("--stage-from"));
  EXPECT_THAT(answer.at("scarce").get<std::string>(), HasSubstr("memory"));
}

}  // namespace
}  // namespace sluice::test
