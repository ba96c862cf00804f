#include "kernels/smooth_snake.h"

#include "kernels/lanes_sine.h"
#include "support/cpu_path_scope.h"
#include "support/throws_error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

using testing::CpuPathScope;

class Case {
 public:
  Case(std::int64_t rows, std::int64_t channels, std::int64_t ratio = 2, std::int64_t taps = 12,
       unsigned seed = 1)
      : rows(rows), channels(channels), ratio(ratio), random_(seed) {
    up = values(taps, 0.5F);
    down = values(taps, 0.5F);
    frequency = values(channels, 2);
    amplitude = values(channels, 2);
    x = values(rows * channels + 1, 3);
  }

  SmoothSnake snake() const { return {{ratio, up, down}, frequency, amplitude}; }

  std::vector<float> expected() const {
    std::vector<float> raised(static_cast<std::size_t>(rows * ratio * channels)), y(x.size() - 1);
    reference::snake_up({ratio, up, down}, x.data() + 1, rows, channels, raised.data());
    reference::snake(frequency, amplitude, raised.data(), rows * ratio);
    reference::snake_down({ratio, up, down}, raised.data(), rows, channels, y.data());
    return y;
  }
  std::vector<float> actual() const {
    std::vector<float> y(x.size());
    snake().run(x.data() + 1, rows, 0, rows, y.data() + 1);
    return {y.begin() + 1, y.end()};
  }

  std::int64_t rows, channels, ratio;
  std::vector<float> up, down, frequency, amplitude;
  std::vector<float> x;  // from its second value on: not aligned to vectors

 private:
  std::vector<float> values(std::int64_t count, float most) {
    std::uniform_real_distribution<float> value(-most, most);
    std::vector<float> result(static_cast<std::size_t>(count));
    for (float& v : result) v = value(random_);
    return result;
  }

  std::mt19937 random_;
};

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, float most) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], most) << "at " << i;
}

TEST(SmoothSnake, equals_the_plain_twin_on_every_path_whatever_the_sizes) {
  unsigned seed = 1;
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    for (const std::int64_t rows : {1, 2, 5, 13, 131, 700}) {
      for (const std::int64_t channels : {1, 2, 5, 16, 24, 63, 64, 65, 96, 150}) {
        SCOPED_TRACE(fmt::format("{}: {} rows, {} channels, seed {}", name(path), rows, channels, seed));
        const Case snake(rows, channels, 2, 12, seed++);

        expect_close(snake.actual(), snake.expected(), 3e-5F);
      }
    }
  }
}

TEST(SmoothSnake, takes_other_ratios_and_filters) {
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    for (const auto& [ratio, taps] : {std::pair{1, 1}, {1, 5}, {2, 2}, {2, 7}, {3, 12}, {4, 9}, {5, 5}}) {
      SCOPED_TRACE(fmt::format("{}: ratio {}, {} taps", name(path), ratio, taps));
      const Case snake(90, 20, ratio, taps);

      expect_close(snake.actual(), snake.expected(), 3e-5F);
    }
  }
}

TEST(SmoothSnake, gives_a_row_the_same_bits_wherever_the_thread_begins) {
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    for (const std::int64_t channels : {5, 24, 96}) {
      const Case snake(230, channels);
      const std::vector<float> all = snake.actual();
      for (const std::int64_t begin : {0, 1, 7, 100, 229}) {
        std::vector<float> some(static_cast<std::size_t>((230 - begin) * channels));

        snake.snake().run(snake.x.data() + 1, 230, begin, 230, some.data());

        EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin() + begin * channels))
            << name(path) << ", " << channels << " channels from row " << begin;
      }
    }
  }
}

TEST(SmoothSnake, is_right_for_arguments_beyond_the_range_of_its_sine) {
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    Case snake(64, 24);
    snake.frequency.assign(24, 1);
    for (std::size_t i = 1; i < snake.x.size(); ++i) snake.x[i] *= 1e5F;

    // The filters' own rounding moves arguments of 10^5 by 10^-2.
    const std::vector<float> y = snake.actual(), want = snake.expected();

    for (std::size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], want[i], 0.3F) << name(path) << " at " << i;
  }
}

TEST(SmoothSnake, keeps_NaN_and_infinities_to_the_rows_that_see_them) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    for (const float value : odd) {
      Case snake(60, 24);
      snake.x[1 + 30 * 24 + 5] = value;

      const std::vector<float> y = snake.actual();

      for (std::int64_t row = 0; row < 60; ++row) {
        const bool sees = row >= 25 && row <= 35;
        EXPECT_EQ(std::isnan(y[static_cast<std::size_t>(row * 24 + 5)]), sees) << name(path) << ", " << row;
        EXPECT_TRUE(std::isfinite(y[static_cast<std::size_t>(row * 24 + 6)])) << name(path) << ", " << row;
      }
    }
  }
}

TEST(SmoothSnake, refuses_numbers_that_do_not_fit_each_other) {
  const std::vector<float> twelve(12, 1), eleven(11, 1), three(3, 1), two(2, 1);

  EXPECT_THAT(
      [&] {
        SmoothSnake({2, twelve, eleven}, three, three);
      },
      test::ThrowsError(ErrorKind::internal, ::testing::HasSubstr("filters of 12 and 11 taps")));
  EXPECT_THAT(
      [&] {
        SmoothSnake({2, twelve, twelve}, three, two);
      },
      test::ThrowsError(ErrorKind::internal, ::testing::HasSubstr("3 frequencies and 2")));
}

float squared_sine_of(float x) {
  Lanes to;
  squared_sine(Lanes{} + x, to);
  return to[7];
}

TEST(SquaredSine, is_right_to_a_few_units_in_the_last_place_within_its_range) {
  std::mt19937 random(5);
  for (const float most : {1e-3F, 1.0F, 10.0F, 1000.0F, kSineRange}) {
    std::uniform_real_distribution<float> value(-most, most);
    for (int i = 0; i < 20000; ++i) {
      const float x = value(random);
      const double sine = std::sin(static_cast<double>(x)), want = sine * sine;
      ASSERT_NEAR(squared_sine_of(x), want, 5e-7 * want + 1e-10) << x;
    }
  }
}

TEST(SquaredSine, is_right_beside_multiples_of_pi) {
  for (int n = -6000; n <= 6000; n += 7) {
    const auto x = static_cast<float>(n * std::numbers::pi);
    const double sine = std::sin(static_cast<double>(x));

    ASSERT_NEAR(squared_sine_of(x), sine * sine, 1e-5 * sine * sine + 1e-16) << n;
  }
}

TEST(SquaredSine, keeps_NaN_and_makes_it_of_infinities) {
  EXPECT_TRUE(std::isnan(squared_sine_of(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(squared_sine_of(std::numeric_limits<float>::infinity())));
  EXPECT_EQ(squared_sine_of(0), 0);
}

}  // namespace
}  // namespace sluice::kernels
