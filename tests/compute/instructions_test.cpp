// SLUICE_CPU on the command line, at -v and in the report.
#include "base/cpu_path.h"
#include "compute/world.h"
#include "support/cpu_variable.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace sluice::test {
namespace {

using ::testing::HasSubstr;

TEST(Instructions, AreToldAtVerboseAndInTheReport) {
  const CpuVariable variable("scalar");
  TemporaryFolder folder;

  const Outcome outcome = run(
      with(fixture_clip(), {"--frames-dir", folder / "frames", "--report", folder / "report.json", "-v"}));

  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("cpu: scalar (asked for with SLUICE_CPU)"));
  const auto report = nlohmann::json::parse(std::ifstream(folder / "report.json"));
  bool told = false;
  for (const auto& choice : report.at("choices"))
    told |= choice.at("what") == "cpu" && choice.at("value") == "scalar";
  EXPECT_TRUE(told) << report.at("choices");
}

TEST(Instructions, GiveTheSameLatentsUpToRoundingOnEveryPath) {
  TemporaryFolder folder;
  auto latents = [&](CpuPath path) {
    const CpuVariable variable(name(path));
    const fs::path file = folder / (std::string(name(path)) + ".safetensors");
    const Outcome outcome =
        run(with(fixture_clip(), {"--frames-dir", folder / name(path), "--latents", file}));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_values(file);
  };
  const auto plain = latents(CpuPath::scalar);
  for (const CpuPath path : cpu_paths().subspan(1)) {
    const auto other = latents(path);
    for (const auto& [tensor, values] : plain) {
      for (std::size_t i = 0; i < values.size(); ++i)
        ASSERT_NEAR(other.at(tensor)[i], values[i], 1e-3) << tensor << " on " << name(path);
    }
  }
}

TEST(Instructions, ThatTheProcessorLacksAreRefusedNamingThoseItHas) {
  const CpuVariable variable("mmx");

  const Outcome outcome = run({"plan", "--model", fixture_file(), "--prompt", "x"});

  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("SLUICE_CPU is 'mmx', which this processor cannot run"));
  EXPECT_THAT(outcome.err, HasSubstr("it can run scalar"));
}

}  // namespace
}  // namespace sluice::test
