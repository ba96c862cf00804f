#include "kernels/frame_conv.h"

#include "kernels/plain_value.h"
#include "support/cpu_path_scope.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

void set(float& to, float value) {
  to = value;
}
void set(Bf16& to, float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  to.bits = static_cast<std::uint16_t>(bits >> 16);
}

template <typename T>
class Case {  // a convolution of random values
 public:
  Case(FrameConvShape shape, Stored format, unsigned seed)
      : random_(seed),
        x_(size(shape.x_frames() * shape.x_height() * shape.x_width() * position_stride<T>(shape.in))),
        skip_(size(y_values(shape))),
        weight_(size(shape.out * shape.in * shape.kernel.taps() * 4 + 1)),
        bias_(size(shape.out * 4 + 1)) {
    const float scale = 1 / std::sqrt(static_cast<float>(shape.in * shape.kernel.taps()));
    for (std::size_t i = 0; i < x_.size(); ++i) {
      const bool channel = static_cast<std::int64_t>(i) % position_stride<T>(shape.in) < shape.in;
      set(x_[i], channel ? next() : 0);
    }
    for (T& value : skip_) set(value, next());
    conv_ = {.shape = shape,
             .x = x_.data(),
             .weight = stored(format, weight_, scale),
             .bias = stored(format, bias_, 1)};
  }

  FrameConv<T>& conv() { return conv_; }
  T& x(std::int64_t position, std::int64_t channel) {
    return x_[size(position * position_stride<T>(conv_.shape.in) + channel)];
  }
  void use_skip() {
    const FrameConvShape& shape = conv_.shape;
    for (std::int64_t frame = 0; frame < shape.frames; ++frame)
      conv_.skip.push_back(skip_.data() + frame * shape.height * shape.width * shape.out);
  }

  std::vector<T> actual() const {
    const std::int64_t bytes = frame_conv_scratch<T>(conv_.shape, at::get_num_threads());
    std::vector<float> scratch(size(bytes / 4 + 16));
    auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
    address = (address + 63) / 64 * 64;
    return result(
        [&](const FrameConv<T>& conv) { kernels::convolve(conv, reinterpret_cast<std::byte*>(address)); });
  }
  std::vector<T> expected() const {
    return result([](const FrameConv<T>& conv) { reference::convolve(conv); });
  }

 private:
  static std::size_t size(std::int64_t x) { return static_cast<std::size_t>(x); }
  static std::int64_t y_values(const FrameConvShape& shape) {
    return shape.frames * shape.height * shape.width * shape.out;
  }
  float next() { return std::uniform_real_distribution<float>(-1, 1)(random_); }

  // At an address that suits no dtype.
  StoredValues stored(Stored format, std::vector<std::byte>& bytes, float scale) {
    const std::size_t value_size = format == Stored::f32 ? 4 : 2;
    for (std::size_t i = 0; 1 + (i + 1) * value_size <= bytes.size(); ++i) {
      float f32;
      Bf16 bf16;
      set(f32, scale * next());
      set(bf16, f32);
      const void* value = format == Stored::f32 ? static_cast<const void*>(&f32) : &bf16;
      std::memcpy(&bytes[1 + i * value_size], value, value_size);
    }
    return {.format = format, .values = bytes.data() + 1};
  }

  template <typename Convolve>
  std::vector<T> result(const Convolve& convolve) const {
    FrameConv<T> conv = conv_;
    std::vector<T> y(size(y_values(conv.shape)));
    conv.y = y.data();
    convolve(conv);
    return y;
  }

  std::mt19937 random_;
  std::vector<T> x_, skip_;
  std::vector<std::byte> weight_, bias_;
  FrameConv<T> conv_;
};

template <typename T>
void expect_close(const std::vector<T>& actual, const std::vector<T>& expected) {
  const float most = sizeof(T) == 4 ? 1e-5F : 0.02F;  // bf16: sums that round to another neighbour
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    ASSERT_NEAR(reference::plain_value(actual[i]), reference::plain_value(expected[i]),
                most * std::max(1.0F, std::abs(reference::plain_value(expected[i]))))
        << "at " << i;
}

template <typename T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <typename T>
class FrameConvTest : public ::testing::Test {};
using Values = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(FrameConvTest, Values);

const FrameConvShape kShapes[] = {
    {.frames = 1, .height = 1, .width = 1, .in = 1, .out = 1},
    {.frames = 2, .height = 3, .width = 5, .in = 7, .out = 3},
    {.frames = 3, .height = 5, .width = 13, .in = 4, .out = 40},
    {.frames = 2, .height = 4, .width = 27, .in = 33, .out = 65, .kernel = {1, 3, 3}},
    {.frames = 2, .height = 7, .width = 6, .in = 6, .out = 16, .kernel = {3, 5, 1}},
    {.frames = 4, .height = 30, .width = 300, .in = 2, .out = 5, .kernel = {1, 1, 3}},
};

TYPED_TEST(FrameConvTest, equals_the_plain_twin_on_every_path_whatever_the_sizes) {
  unsigned seed = 1;
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const BorderRows rows : {BorderRows::zeros, BorderRows::given}) {
      for (FrameConvShape shape : kShapes) {
        for (const Stored format : {Stored::f32, Stored::bf16}) {
          SCOPED_TRACE(fmt::format("{}: {} x {} x {}, {} -> {}, seed {}", name(path), shape.frames,
                                   shape.height, shape.width, shape.in, shape.out, seed));
          shape.rows = rows;
          Case<TypeParam> of(shape, format, seed++);

          expect_close(of.actual(), of.expected());
        }
      }
    }
  }
}

TYPED_TEST(FrameConvTest, computes_every_second_position_as_if_it_had_computed_all) {
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);
    FrameConvShape every = {.frames = 2, .height = 7, .width = 13, .in = 5, .out = 33};
    every.rows = BorderRows::given;
    Case<TypeParam> of(every, Stored::bf16, 9);
    const auto all = of.actual();
    FrameConvShape& second = of.conv().shape;
    second.height = 4, second.width = 7, second.step = 2;

    const auto got = of.actual();

    expect_close(got, of.expected());
    for (std::size_t place = 0; place < 2 * 4 * 7; ++place) {
      const std::size_t frame = place / 28, row = place / 7 % 4, column = place % 7;
      ASSERT_EQ(std::memcmp(&got[place * 33], &all[((frame * 7 + 2 * row) * 13 + 2 * column) * 33],
                            33 * sizeof(TypeParam)),
                0)
          << place;
    }
  }
}

TYPED_TEST(FrameConvTest, adds_what_skips_it_before_rounding) {
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);
    Case<TypeParam> of({.frames = 3, .height = 2, .width = 5, .in = 8, .out = 19}, Stored::bf16, 5);
    const auto without = of.actual();

    of.use_skip();

    expect_close(of.actual(), of.expected());
    EXPECT_FALSE(same(of.actual(), without));
  }
}

TYPED_TEST(FrameConvTest, gives_every_frame_the_same_bits_alone_as_in_a_clip) {
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    const FrameConvShape shape = {.frames = 5, .height = 9, .width = 31, .in = 12, .out = 48};
    Case<TypeParam> of(shape, Stored::bf16, 6);
    const auto all = of.actual();
    const std::size_t frame_values = 9 * 31 * 48;
    const TypeParam* x = of.conv().x;
    of.conv().shape.frames = 1;
    for (std::int64_t frame = 0; frame < 5; ++frame) {
      of.conv().x = x + frame * 9 * 33 * position_stride<TypeParam>(12);

      const auto one = of.actual();

      EXPECT_EQ(std::memcmp(one.data(), all.data() + static_cast<std::size_t>(frame) * frame_values,
                            frame_values * sizeof(TypeParam)),
                0)
          << name(path) << ", frame " << frame;
    }
  }
}

TYPED_TEST(FrameConvTest, gives_the_same_bits_on_any_number_of_threads) {
  Case<TypeParam> of({.frames = 6, .height = 30, .width = 50, .in = 6, .out = 40}, Stored::bf16, 7);
  const int before = at::get_num_threads();
  std::vector<std::vector<TypeParam>> results;
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    results.push_back(of.actual());
  }
  at::set_num_threads(before);

  for (const auto& result : results) EXPECT_TRUE(same(result, results.front()));
}

TYPED_TEST(FrameConvTest, keeps_NaN_within_its_reach) {
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);
    Case<TypeParam> of({.frames = 3, .height = 6, .width = 7, .in = 4, .out = 2}, Stored::f32, 8);
    set(of.x((2 * 6 + 3) * 9 + 4, 1), kNan);  // frame 2 of x, row 3, column 4: column 3 of y

    const auto y = of.actual();

    for (std::int64_t place = 0; place < 3 * 6 * 7; ++place) {
      const std::int64_t row = place / 7 % 6, column = place % 7;
      const bool reached = std::abs(row - 3) <= 1 && std::abs(column - 3) <= 1;
      EXPECT_EQ(std::isnan(reference::plain_value(y[static_cast<std::size_t>(place * 2)])), reached) << place;
    }
  }
}

}  // namespace
}  // namespace sluice::kernels
