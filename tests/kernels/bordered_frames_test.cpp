#include "kernels/bordered_frames.h"

#include "kernels/frame_conv.h"
#include "kernels/plain_value.h"
#include "support/cpu_path_scope.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kEps = 1e-8;

template <typename T>
class Clip {  // frames of random values, the second normed, and what they become
 public:
  Clip(BorderedPicture picture, unsigned seed) : picture_(picture) {
    std::mt19937 random(seed);
    std::normal_distribution<float> value(0, 3);
    values_.resize(static_cast<std::size_t>(1 + 3 * frame_values()));
    for (T& x : values_) reference::round_to(value(random), x);
  }

  T& at(std::int64_t frame, std::int64_t place, std::int64_t channel) {
    return values_[static_cast<std::size_t>(1 + frame * frame_values() + place * picture_.channels +
                                            channel)];
  }
  const T* frame(std::int64_t index) const { return values_.data() + 1 + index * frame_values(); }

  std::vector<T> actual() const {
    return entered([&](auto frames, T* to) { kernels::enter_frames<T>(picture_, frames, to); });
  }
  std::vector<T> expected() const {
    return entered([&](auto frames, T* to) { reference::enter_frames<T>(picture_, frames, to); });
  }

 private:
  std::int64_t frame_values() const { return picture_.height * picture_.width * picture_.channels; }

  template <typename Enter>
  std::vector<T> entered(const Enter& enter) const {
    const std::vector<EnteringFrame<T>> frames = {{.from = frame(0)},
                                                  {.from = frame(1), .entry = Entry::normed},
                                                  {.from = frame(2), .entry = Entry::normed}};
    T marker;
    std::memset(&marker, 0x3c, sizeof marker);
    std::vector<T> to(static_cast<std::size_t>(3 * bordered_values<T>(picture_) + 2), marker);
    enter(std::span<const EnteringFrame<T>>(frames), to.data() + 1);
    return to;
  }

  BorderedPicture picture_;
  std::vector<T> values_;
};

template <typename T>
void expect_close(const std::vector<T>& actual, const std::vector<T>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  const float most = sizeof(T) == 4 ? 4e-6F : 1.0F / 128;  // bf16: the neighbour
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const float a = reference::plain_value(actual[i]), b = reference::plain_value(expected[i]);
    if (std::isnan(b))
      ASSERT_TRUE(std::isnan(a)) << "at " << i;
    else
      ASSERT_NEAR(a, b, most * std::max(std::abs(b), 0.01F)) << "at " << i;
  }
}

template <typename T>
class BorderedFrames : public ::testing::Test {};
using Values = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(BorderedFrames, Values);

TYPED_TEST(BorderedFrames, equal_the_plain_twin_on_every_path_whatever_the_sizes) {
  unsigned seed = 1;
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const Border border : {Border::zeros, Border::reflect}) {
      for (const std::int64_t channels : {1, 3, 16, 31, 48, 512}) {
        for (const auto& [height, width] : {std::pair{3, 3}, {4, 7}, {9, 5}}) {
          for (const std::int64_t columns : {0, 1, 2}) {
            SCOPED_TRACE(fmt::format("{}: border {} of {} columns, {} x {} x {}, seed {}", name(path),
                                     static_cast<int>(border), columns, height, width, channels, seed));
            const Clip<TypeParam> clip({.height = height,
                                        .width = width,
                                        .channels = channels,
                                        .columns = columns,
                                        .rows = 2 - columns,
                                        .border = border,
                                        .eps = kEps},
                                       seed++);

            expect_close(clip.actual(), clip.expected());
          }
        }
      }
    }
  }
}

TYPED_TEST(BorderedFrames, keep_NaN_infinities_zeros_and_large_values_at_their_position) {
  const float kValues[] = {std::nanf(""), kInfinity, -kInfinity, 1e18F, -1e18F, 1e-20F};
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);
    Clip<TypeParam> clip({.height = 3, .width = 3, .channels = 20, .eps = kEps}, 3);
    for (std::int64_t i = 0; i < 6; ++i) reference::round_to(kValues[i], clip.at(1, i, 17 - i));
    for (std::int64_t c = 0; c < 20; ++c) reference::round_to(0, clip.at(1, 7, c));

    expect_close(clip.actual(), clip.expected());
  }
}

TYPED_TEST(BorderedFrames, leave_as_they_came) {
  for (const Border border : {Border::zeros, Border::reflect}) {
    const BorderedPicture picture = {.height = 5, .width = 4, .channels = 7, .border = border};
    const Clip<TypeParam> clip(picture, 4);
    const auto bordered = clip.actual();
    std::vector<TypeParam> picture_again(5 * 4 * 7);

    leave_frame(picture, bordered.data() + 1, picture_again.data());

    EXPECT_EQ(std::memcmp(picture_again.data(), clip.frame(0), picture_again.size() * sizeof(TypeParam)), 0);
  }
}

}  // namespace
}  // namespace sluice::kernels
