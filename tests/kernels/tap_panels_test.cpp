#include "kernels/tap_panels.h"

#include "support/cpu_path_scope.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

template <typename T>
class Weights {  // random ones, at an address that suits no dtype
 public:
  Weights(Stored format, TapWeights shape, unsigned seed) : shape_(shape) {
    const auto count = static_cast<std::size_t>(shape.out * shape.in * shape.taps);
    const std::size_t size = format == Stored::f32 ? 4 : 2;
    bytes_.resize(1 + count * size);
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> value(-1, 1);
    for (std::size_t i = 0; i < count; ++i) {
      const float x = value(random);
      std::uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      const std::uint16_t half = static_cast<std::uint16_t>(  // of f16 any finite one will do
          format == Stored::bf16 ? bits >> 16 : (bits & 0x83ff) | 0x3400);
      std::memcpy(&bytes_[1 + i * size], size == 4 ? static_cast<const void*>(&bits) : &half, size);
    }
    shape_.values = {.format = format, .values = bytes_.data() + 1};
  }

  const TapWeights& shape() const { return shape_; }
  void put(std::int64_t index, float x) {  // of f32
    std::memcpy(&bytes_[static_cast<std::size_t>(1 + 4 * index)], &x, sizeof x);
  }

 private:
  TapWeights shape_;
  std::vector<std::byte> bytes_;
};

template <typename T>
class TapPanels : public ::testing::Test {
 protected:
  using Taps = std::span<const std::int64_t>;

  template <typename Pack>
  static std::vector<T> packed(const TapWeights& weights, std::int64_t first, const Pack& pack) {
    const T marker = mark();
    std::vector<T> panel(static_cast<std::size_t>(tap_panel_values<T>(weights, first) + 2), marker);
    pack(panel.data() + 1);
    EXPECT_EQ(std::memcmp(&panel.front(), &marker, sizeof(T)), 0);
    EXPECT_EQ(std::memcmp(&panel.back(), &marker, sizeof(T)), 0);
    return panel;
  }
  static void expect_like_twin(const TapWeights& weights, std::int64_t first, Taps taps) {
    const auto actual =
        packed(weights, first, [&](T* to) { kernels::pack_tap_panel(weights, first, taps, to); });
    const auto expected =
        packed(weights, first, [&](T* to) { reference::pack_tap_panel(weights, first, taps, to); });
    ASSERT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(T)), 0);
  }

 private:
  static T mark() {
    T marker;
    std::memset(&marker, 0x5a, sizeof marker);
    return marker;
  }
};
using Values = ::testing::Types<float, Bf16>;
TYPED_TEST_SUITE(TapPanels, Values);

TYPED_TEST(TapPanels, equal_the_plain_twin_on_every_path_whatever_the_sizes) {
  unsigned seed = 1;
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const Stored format : {Stored::f32, Stored::bf16, Stored::f16}) {
      for (const bool transposed : {false, true}) {
        for (const std::int64_t taps : {1, 3, 7, 16, 27, 41}) {
          for (const auto& [out, in] : {std::pair{32, 16}, {48, 9}, {5, 1}, {65, 34}}) {
            SCOPED_TRACE(fmt::format("{}: format {}, {} taps, {} -> {}, transposed {}, seed {}", name(path),
                                     static_cast<int>(format), taps, in, out, transposed, seed));
            const Weights<TypeParam> weights(
                format, {.out = out, .in = in, .taps = taps, .transposed = transposed}, seed++);

            for (std::int64_t first = 0; first < out; first += kPanelColumns)
              this->expect_like_twin(weights.shape(), first, {});
          }
        }
      }
    }
  }
}

TYPED_TEST(TapPanels, hold_the_wanted_taps_alone_in_their_order) {
  const Weights<TypeParam> weights(Stored::bf16, {.out = 40, .in = 11, .taps = 9}, 5);
  const std::array<std::int64_t, 4> taps = {7, 0, 8, 3};
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);

    this->expect_like_twin(weights.shape(), 0, taps);
    this->expect_like_twin(weights.shape(), 32, taps);
  }
}

TYPED_TEST(TapPanels, keep_NaN_and_infinity_where_they_are) {
  Weights<TypeParam> weights(Stored::f32, {.out = 3, .in = 4, .taps = 2}, 9);
  weights.put(0, INFINITY);                           // channel 0, input 0, tap 0
  weights.put(2 * 4 * 2 + 3 * 2 + 1, std::nanf(""));  // channel 2, input 3, tap 1
  for (const CpuPath path : cpu_paths()) {
    SCOPED_TRACE(name(path));
    const testing::CpuPathScope scope(path);

    this->expect_like_twin(weights.shape(), 0, {});
  }
}

// The layout of the header, by hand.
TEST(TapPanel, of_two_taps_lies_tap_by_tap_pair_by_pair) {
  const std::array<float, 6> values = {1, 2, 3, 4, 5, 6};  // one channel: [in 3][taps 2]
  const TapWeights weights = {
      .values = {.format = Stored::f32, .values = reinterpret_cast<const std::byte*>(values.data())},
      .out = 1,
      .in = 3,
      .taps = 2};
  std::vector<Bf16> panel(static_cast<std::size_t>(tap_panel_values<Bf16>(weights, 0)));

  pack_tap_panel(weights, 0, {}, panel.data());

  ASSERT_EQ(panel.size(), 2U * 2 * 16 * 2);
  auto at = [&](int tap, int word, int half) {
    return panel[static_cast<std::size_t>(((tap * 2 + word) * 16) * 2 + half)].bits;
  };
  EXPECT_EQ(at(0, 0, 0), 0x3f80);  // 1
  EXPECT_EQ(at(0, 0, 1), 0x4040);  // 3
  EXPECT_EQ(at(0, 1, 0), 0x40a0);  // 5
  EXPECT_EQ(at(0, 1, 1), 0);
  EXPECT_EQ(at(1, 0, 0), 0x4000);  // 2
  EXPECT_EQ(at(1, 1, 0), 0x40c0);  // 6
}

}  // namespace
}  // namespace sluice::kernels
