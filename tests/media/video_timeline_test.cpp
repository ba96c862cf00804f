#include "media/video_timeline.h"

#include <gmock/gmock.h>

#include <random>

namespace sluice::media {
namespace {

using ::testing::ElementsAre;

Timeline timeline(Rational tick, const std::vector<std::int64_t>& times, std::int64_t end) {
  Timeline made{.tick = tick, .end = end};
  for (std::int64_t at : times) made.frames.push_back({at, at == 0});
  return made;
}

Timeline steady(Rational rate, int count) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < count; ++i) times.push_back(i);
  return timeline({rate.den, rate.num}, times, count);
}

// Matroska's milliseconds.
Timeline in_milliseconds(Rational rate, int count) {
  std::vector<std::int64_t> times;
  for (int i = 0; i <= count; ++i) times.push_back(std::llround(1000 * i / rate.value()));
  const std::int64_t end = times.back();
  times.pop_back();
  return timeline({1, 1000}, times, end);
}

std::vector<std::size_t> shown(const Timeline& timeline, Rational rate) {
  std::vector<std::size_t> indices;
  for (std::int64_t n = 0; n < sampled_frames(timeline, rate); ++n)
    indices.push_back(frame_shown_at(timeline, rate, n));
  return indices;
}

TEST(VideoTimeline, gives_each_frame_once_at_its_own_rate_however_times_are_rounded) {
  for (Rational rate : {Rational{24, 1}, Rational{24000, 1001}, Rational{25, 1}, Rational{30000, 1001},
                        Rational{60, 1}, Rational{120, 1}, Rational{25, 2}}) {
    EXPECT_TRUE(is_one_to_one(steady(rate, 500), rate)) << to_string(rate);
    EXPECT_TRUE(is_one_to_one(in_milliseconds(rate, 500), rate)) << to_string(rate);
    EXPECT_FALSE(has_variable_rate(in_milliseconds(rate, 500))) << to_string(rate);
  }
}

TEST(VideoTimeline, tells_the_mean_rate_as_the_file_states_it_or_by_its_name) {
  EXPECT_EQ(mean_rate(in_milliseconds({30000, 1001}, 300), {30000, 1001}), (Rational{30000, 1001}));
  EXPECT_EQ(mean_rate(in_milliseconds({30000, 1001}, 300), {1000, 1}), (Rational{30000, 1001}));
  EXPECT_EQ(mean_rate(in_milliseconds({24, 1}, 300), {0, 1}), (Rational{24, 1}));
  EXPECT_EQ(mean_rate(timeline({1, 1000}, {0, 40, 80, 400}, 480), {25, 1}), (Rational{15, 2}));
}

TEST(VideoTimeline, leaves_out_every_fifth_frame_from_30_to_24) {
  EXPECT_THAT(shown(steady({30, 1}, 10), {24, 1}), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8));
}

TEST(VideoTimeline, repeats_frames_at_a_higher_rate) {
  EXPECT_THAT(shown(steady({24, 1}, 3), {48, 1}), ElementsAre(0, 0, 1, 1, 2, 2));
}

TEST(VideoTimeline, holds_a_frame_as_long_as_it_is_shown) {
  const Timeline varying = timeline({1, 1000}, {0, 40, 80, 400}, 480);

  EXPECT_THAT(shown(varying, {25, 1}), ElementsAre(0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3));
  EXPECT_TRUE(has_variable_rate(varying));
}

TEST(VideoTimeline, does_not_take_half_a_frame_for_rounding_where_a_tick_is_a_frame) {
  EXPECT_THAT(shown(steady({2, 1}, 2), {4, 1}), ElementsAre(0, 0, 1, 1));
}

TEST(VideoTimeline, of_one_frame_gives_one_even_at_a_lower_rate) {
  EXPECT_THAT(shown(steady({30, 1}, 1), {1, 1}), ElementsAre(0));
}

TEST(VideoTimeline, does_not_overflow_for_hours_in_fine_ticks) {
  const std::int64_t hours = std::int64_t{90'000} * 3600 * 48;
  const Timeline fine = timeline({1, 90'000}, {0, hours}, hours + 3003);

  EXPECT_EQ(sampled_frames(fine, {30000, 1001}), 5'178'822 + 1);
  EXPECT_EQ(frame_shown_at(fine, {30000, 1001}, 5'178'822), 1u);
}

// Whatever the times: the frame shown is the last that began by then, within half a millisecond.
TEST(VideoTimeline, shows_the_last_frame_that_began_for_any_times) {
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> times = {0};
    for (int i = 0; i < 20; ++i)
      times.push_back(times.back() + 1 + static_cast<std::int64_t>(random() % 100));
    const Timeline any = timeline({1, 1000}, times, times.back() + 40);
    const Rational rate{static_cast<std::int64_t>(1 + random() % 60), 1};

    const std::vector<std::size_t> indices = shown(any, rate);

    for (std::size_t n = 0; n < indices.size(); ++n) {
      const double at = 1000.0 * static_cast<double>(n) / rate.value();
      EXPECT_LE(static_cast<double>(times[indices[n]]), at + 0.5001) << "seed " << seed;
      if (indices[n] + 1 == times.size()) continue;
      EXPECT_GE(static_cast<double>(times[indices[n] + 1]), at + 0.4999) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace sluice::media
