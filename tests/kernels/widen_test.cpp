#include "kernels/widen.h"

#include "kernels/widen_values.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace sluice::kernels {
namespace {

constexpr std::array kFormats = {Stored::f32, Stored::bf16, Stored::f16, Stored::fp8, Stored::nf4};

// Every processor's compilation that runs here, one after the other; the best again at the end.
template <typename Visit>
void each_target(const Visit& visit) {
  for (std::int64_t targets = hwy::SupportedTargets(), target; targets != 0; targets &= ~target) {
    target = targets & -targets;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    visit();
    hwy::SetSupportedTargetsForTest(0);
  }
}

std::size_t stored_bytes(Stored format, std::size_t count) {
  switch (format) {
    case Stored::f32:
      return 4 * count;
    case Stored::bf16:
    case Stored::f16:
      return 2 * count;
    case Stored::fp8:
      return count;
    case Stored::nf4:
      return (count + 1) / 2;
  }
  return 0;
}

// Random bits, so NaN, infinity and subnormal values too, `offset` bytes after an aligned address, in an
// allocation that ends where they end.
struct RandomValues {
  std::vector<std::byte> values, scales;
  StoredValues stored;

  RandomValues(Stored format, std::size_t count, std::size_t offset, std::mt19937& random)
      : values(offset + stored_bytes(format, count)), scales(offset) {
    for (std::byte& b : values) b = static_cast<std::byte>(random());
    auto add_scale = [&](float scale) {
      scales.resize(scales.size() + 4);
      std::memcpy(scales.data() + scales.size() - 4, &scale, 4);
    };
    std::lognormal_distribution<float> positive(-3, 3);
    if (format == Stored::fp8) add_scale(positive(random));
    for (std::size_t i = 0; format == Stored::nf4 && i < count; i += 64)
      add_scale(random() % 5 == 0 ? 0 : positive(random));
    stored = {.format = format,
              .values = values.data() + offset,
              .scales = scales.size() > offset ? scales.data() + offset : nullptr};
  }
};

float value_of(float x) {
  return x;
}
float value_of(Bf16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

// The same bits; one NaN is as good as another.
template <typename T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float a = value_of(got[i]), b = value_of(expected[i]);
    if (std::isnan(a) && std::isnan(b)) continue;
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a), std::bit_cast<std::uint32_t>(b))
        << i << ": " << a << ", " << b;
  }
}

template <typename T>
void expect_as_twin(const StoredValues& stored, std::int64_t first, std::int64_t count) {
  constexpr std::size_t kGuard = 32;  // beyond the end nothing is written
  std::vector<T> got(static_cast<std::size_t>(count) + kGuard), expected = got;

  widen_values(stored, first, count, got.data());
  reference::widen_values(stored, first, count, expected.data());

  expect_same(got, expected);
}

TEST(WidenValues, are_those_of_the_plain_twin_on_every_processor) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  each_target([&] {
    std::mt19937 random(seed);
    for (const Stored format : kFormats) {
      SCOPED_TRACE("format " + std::to_string(static_cast<int>(format)));
      for (int round = 0; round < 200; ++round) {
        const std::size_t count = 1 + random() % 500, first = random() % count;
        const std::size_t taken = 1 + random() % (count - first);
        const RandomValues some(format, count, random() % 8, random);
        expect_as_twin<float>(some.stored, static_cast<std::int64_t>(first),
                              static_cast<std::int64_t>(taken));
        expect_as_twin<Bf16>(some.stored, static_cast<std::int64_t>(first), static_cast<std::int64_t>(taken));
      }
    }
  });
}

TEST(WidenValues, every_code_of_fp8_times_any_scale) {
  std::vector<std::byte> codes(256);
  for (std::size_t i = 0; i < 256; ++i) codes[i] = static_cast<std::byte>(i);
  each_target([&] {
    for (const float scale : {1.0F, 0.1F, 3e-40F, 1e-38F, 1e36F, 3e38F}) {
      const StoredValues stored{.format = Stored::fp8,
                                .values = codes.data(),
                                .scales = reinterpret_cast<const std::byte*>(&scale)};
      expect_as_twin<float>(stored, 0, 256);
      expect_as_twin<Bf16>(stored, 0, 256);
    }
    const StoredValues without_scale{.format = Stored::fp8, .values = codes.data()};
    std::vector<float> values(256);
    widen_values(without_scale, 0, 256, values.data());
    EXPECT_EQ(values[0x7e], 448.0F);
    EXPECT_EQ(values[0x81], -0.001953125F);
    EXPECT_TRUE(std::isnan(values[0x7f]) && std::isnan(values[0xff]));
  });
}

TEST(WidenValues, every_f16) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  const StoredValues stored{.format = Stored::f16,
                            .values = reinterpret_cast<const std::byte*>(halves.data())};
  each_target([&] {
    expect_as_twin<float>(stored, 0, 65536);
    expect_as_twin<Bf16>(stored, 0, 65536);
  });
}

TEST(WidenValues, nf4_takes_the_high_half_first_and_a_zero_block_is_zero) {
  const std::byte packed[] = {std::byte{0xf0}, std::byte{0x7e}};
  const float absmax = 2, none = 0;
  each_target([&] {
    std::vector<float> values(3);
    StoredValues stored{
        .format = Stored::nf4, .values = packed, .scales = reinterpret_cast<const std::byte*>(&absmax)};
    widen_values(stored, 0, 3, values.data());
    EXPECT_EQ(values, (std::vector<float>{2, -2, 0}));

    stored.scales = reinterpret_cast<const std::byte*>(&none);
    widen_values(stored, 0, 3, values.data());
    EXPECT_EQ(values, (std::vector<float>{0, 0, 0}));
  });
}

TEST(WidenRows, take_a_range_of_a_matrix_whose_blocks_cross_rows) {
  at::manual_seed(3);
  const std::int64_t rows = 301, columns = 1023, count = rows * columns;
  const Matrix matrix(at::randint(0, 256, {(count + 1) / 2}, at::kByte), at::rand({(count + 63) / 64}), rows,
                      columns);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    at::Tensor got = at::empty({250, columns}, dtype), expected = at::empty({250, columns}, dtype);

    widen_rows(matrix, 50, 300, got);
    reference::widen_rows(matrix, 50, 300, expected);

    EXPECT_TRUE(at::equal(got, expected));
  }
}

}  // namespace
}  // namespace sluice::kernels
