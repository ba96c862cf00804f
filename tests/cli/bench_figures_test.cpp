// What follows from measured times, with numbers.
#include "cli/bench_figures.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

BenchRow row(const char* way, std::vector<double> seconds, const char* cache = "warm",
             const char* into = "touched") {
  return {.cache = cache,
          .into = into,
          .way = way,
          .backend = std::string(way) == "auto" ? "pread" : way,
          .reason = "because",
          .seconds = seconds,
          .cpu_seconds = std::vector<double>(seconds.size(), 0.25)};
}

BenchFigures figures(std::vector<BenchRow> rows) {
  return {.bytes = GiB(2), .rounds = 3, .rows = std::move(rows), .left_out = {"direct: refused here"}};
}

TEST(Median, is_the_middle_or_between_the_two_in_the_middle) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 9}), 3.5);
}

TEST(Recommendation, leaves_it_at_auto_where_runs_overlap) {
  EXPECT_THAT(recommendation(figures({row("auto", {1, 1.2, 2}), row("direct", {0.5, 0.6, 1.1})})),
              StartsWith("leave --read-backend at auto"));
}

TEST(Recommendation, names_the_best_way_for_each_condition_in_which_it_always_won) {
  const std::string text = recommendation(figures({
      row("auto", {2, 2, 2}),
      row("mmap", {1.5, 1.5, 1.5}),
      row("direct", {1, 1, 1}),
      row("auto", {2, 2, 2}, "cold"),
      row("direct", {2.1, 2.1, 2.1}, "cold"),
      row("auto", {3, 3, 3}, "cold", "fresh"),
      row("uring", {2, 2, 2}, "cold", "fresh"),
  }));

  EXPECT_EQ(text,
            "warm, into touched memory: --read-backend direct (2.00 x auto); cold, into fresh memory: "
            "--read-backend uring (1.50 x auto)");
}

TEST(Recommendation, takes_three_rounds) {
  BenchFigures two = figures({row("auto", {2, 2}), row("direct", {1, 1})});
  two.rounds = 2;

  EXPECT_THAT(recommendation(two), HasSubstr("too few rounds"));
}

TEST(Recommendation, takes_no_raw_read_for_a_backend) {
  EXPECT_THAT(recommendation(figures({row("auto", {2, 2, 2}), row("raw pread", {1, 1, 1})})),
              StartsWith("leave --read-backend at auto"));
}

TEST(BenchTable, has_median_and_spread_the_fastest_of_a_condition_first) {
  const std::string text = as_text(figures({
      row("auto", {1, 2, 4}, "cold"),
      row("auto", {1, 2, 4}),
      row("direct", {1, 1, 1}),
  }));

  EXPECT_THAT(text, HasSubstr("2.0 GiB, 3 rounds; GiB/s"));
  EXPECT_THAT(text,
              HasSubstr("\nwarm  touched  direct                      2.00      2.00    2.00     0.25\n"
                        "warm  touched  auto (pread)                1.00      0.50    2.00     0.25\n"
                        "cold  touched  auto (pread)                1.00      0.50    2.00     0.25\n"));
  EXPECT_THAT(text, AllOf(HasSubstr("auto, cold, touched: pread: because\n"),
                          HasSubstr("left out: direct: refused here\n")));
}

TEST(BenchJson, has_every_run) {
  const nlohmann::json object = as_json(figures({row("auto", {1, 2, 4})}));

  EXPECT_EQ(object.at("bytes"), GiB(2));
  EXPECT_EQ(object.at("results").at(0).at("seconds"), nlohmann::json({1.0, 2.0, 4.0}));
  EXPECT_EQ(object.at("results").at(0).at("gib_per_second"), 1.0);
  EXPECT_EQ(object.at("results").at(0).at("lowest"), 0.5);
  EXPECT_EQ(object.at("results").at(0).at("highest"), 2.0);
  EXPECT_EQ(object.at("left_out").at(0), "direct: refused here");
}

}  // namespace
}  // namespace sluice::cli
