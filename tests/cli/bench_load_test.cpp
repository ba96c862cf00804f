// `sluice bench load`: what it measures, and what it leaves behind.
#include "cli/world.h"

#include <csignal>
#include <set>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;

std::set<std::string> different(const json& rows, const char* key) {
  std::set<std::string> values;
  for (const json& row : rows) values.insert(row.at(key));
  return values;
}

class BenchLoad : public ::testing::Test {
 protected:
  // On a disk, for there to be a cold state.
  TemporaryFolder folder_{SLUICE_BINARY_DIR};
};

TEST_F(BenchLoad, measures_every_way_in_every_condition_with_a_file_of_its_own) {
  const json result =
      result_of({"bench", "load", "--dir", folder_.path(), "--size", "3MiB", "--rounds", "2"});

  EXPECT_EQ(result.at("bytes"), MiB(3));
  EXPECT_EQ(result.at("rounds"), 2);
  const json& rows = result.at("results");
  EXPECT_THAT(different(rows, "way"), IsSupersetOf({"raw pread", "auto", "mmap", "pread"}));
  EXPECT_THAT(different(rows, "cache"), ElementsAre("cold", "warm"));
  EXPECT_THAT(different(rows, "into"), ElementsAre("fresh", "touched"));
  EXPECT_EQ(rows.size() % 4, 0u);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("seconds").size(), 2u);
    EXPECT_GT(row.at("gib_per_second"), 0.0);
    EXPECT_LE(row.at("lowest"), row.at("highest"));
    if (row.at("way") == "auto") {
      EXPECT_NE(row.at("reason"), "");
      EXPECT_NE(row.at("backend"), "auto");
    }
  }
  EXPECT_TRUE(result.at("recommendation").is_string());
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(BenchLoad, reads_a_file_that_is_given_and_leaves_it_there) {
  SyntheticFile().tensor("a", Dtype::U8, {1 << 20}).write_to(folder_ / "m.safetensors");
  const std::string before = file_content(folder_ / "m.safetensors");

  const Outcome text = run({"bench", "load", "--rounds", "1", folder_ / "m.safetensors"});

  ASSERT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, AllOf(HasSubstr("1.0 MiB, 1 round; GiB/s"), HasSubstr("\nwarm  touched  "),
                              HasSubstr("auto, warm, touched: "), HasSubstr("too few rounds to recommend")));
  EXPECT_THAT(text.err, HasSubstr("measure      "));
  EXPECT_EQ(file_content(folder_ / "m.safetensors"), before);
}

TEST_F(BenchLoad, says_so_where_the_page_cache_cannot_be_emptied) {
  TemporaryFolder in_memory("/dev/shm");

  const json result =
      result_of({"bench", "load", "--dir", in_memory.path(), "--size", "1MiB", "--rounds", "1"});

  EXPECT_THAT(different(result.at("results"), "cache"), ElementsAre("warm"));
  EXPECT_THAT(result.at("left_out").dump(), HasSubstr("cold: the page cache could not be emptied"));
}

TEST_F(BenchLoad, leaves_nothing_when_it_is_interrupted) {
  for (const char* phase : {"make a file", "measure"}) {
    Program program({.arguments = {"bench", "load", "--dir", folder_.path(), "--size",
                                   std::string(phase) == "measure" ? "1MiB" : "1GiB", "--rounds", "1000"}});
    ASSERT_TRUE(program.wait_for(phase));
    program.send(SIGINT);

    EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
    EXPECT_THAT(folder_.names(), IsEmpty()) << phase;
  }
}

TEST_F(BenchLoad, refuses_what_it_cannot_measure) {
  write_huge(folder_ / "huge.safetensors", 1024);
  const Arguments bench = {"bench", "load"};

  EXPECT_THAT(
      run(with(bench, {folder_ / "huge.safetensors"})),
      Refuses(4, HasSubstr("not enough memory to measure with 1.0 TiB: needs 2.0 TiB"), HasSubstr("--size")));
  EXPECT_THAT(run(with(bench, {"--dir", folder_.path(), "--size", "4000T"})),
              Refuses(4, HasSubstr("not enough disk space: needs "), HasSubstr("another folder")));
  EXPECT_THAT(run(with(bench, {"--dir", folder_ / "none"})), Refuses(2, HasSubstr("none")));
  EXPECT_THAT(run(with(bench, {"--size", "1KiB"})), Refuses(2, HasSubstr("--size 1KiB is too small")));
  EXPECT_THAT(run(with(bench, {"--rounds", "0"})), Refuses(2, HasSubstr("--rounds 0 is impossible")));
  EXPECT_THAT(run(with(bench, {folder_ / "huge.safetensors", "--size", "1GiB"})),
              Refuses(2, HasSubstr("excludes")));
  EXPECT_THAT(run(with(bench, {"--ronds", "1"})),
              Refuses(2, HasSubstr("'--ronds' is unknown"), HasSubstr("did you mean --rounds?")));
}

TEST(Groups, say_which_commands_they_have) {
  EXPECT_THAT(run({"bench"}), Refuses(2, HasSubstr("no command given"), HasSubstr("sluice bench --help")));
  EXPECT_THAT(run({"bench", "laod"}),
              Refuses(2, HasSubstr("'laod' is unknown"), HasSubstr("did you mean load?")));
  EXPECT_THAT(run({"bench", "--help"}).out, HasSubstr("load  "));
}

TEST(CommandsOfBytes, show_two_examples_each_in_their_help) {
  for (const Arguments& command : {Arguments{"load"}, {"verify"}, {"bench", "load"}}) {
    const std::string words = fmt::format("sluice {}", fmt::join(command, " "));
    const Outcome outcome = run(with(command, {"--help"}));
    EXPECT_THAT(outcome, Succeeds());
    EXPECT_THAT(outcome.out.substr(outcome.out.find("examples:")),
                ::testing::ContainsRegex(words + "(.|\n)*" + words));
  }
}

}  // namespace
}  // namespace sluice::test
