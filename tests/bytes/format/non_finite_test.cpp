// NaN and infinity in every floating format, against values by their definition.
#include "bytes/format/non_finite.h"
#include "support/small_floats.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>

namespace sluice::bytes {

void PrintTo(const NonFinite& found, std::ostream* out) {
  *out << found.nan << " NaN, " << found.infinite << " infinite";
}

namespace {

using test::SmallFloats;

template <typename Value>
NonFinite count_of(Dtype dtype, const std::vector<Value>& values) {
  return count_non_finite(dtype, std::as_bytes(std::span(values)));
}

template <typename Code>
void expect_every_code_is_judged(Dtype dtype) {
  const SmallFloats format(dtype);
  for (std::uint32_t code = 0; code < format.codes(); ++code) {
    const double value = format.decode(code);
    const NonFinite expected{std::isnan(value), std::isinf(value)};

    ASSERT_EQ(count_of(dtype, std::vector{static_cast<Code>(code)}), expected) << "code " << code;
  }
}

TEST(NonFinite, judges_every_code_of_the_small_formats) {
  expect_every_code_is_judged<std::uint16_t>(Dtype::F16);
  expect_every_code_is_judged<std::uint16_t>(Dtype::BF16);
  expect_every_code_is_judged<std::uint8_t>(Dtype::F8_E5M2);
  expect_every_code_is_judged<std::uint8_t>(Dtype::F8_E4M3);
}

TEST(NonFinite, knows_the_one_NaN_of_formats_without_infinity) {
  std::vector<std::uint8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<std::uint8_t>(i);

  for (const Dtype dtype : {Dtype::F8_E8M0, Dtype::F8_E4M3FNUZ, Dtype::F8_E5M2FNUZ})
    EXPECT_EQ(count_of(dtype, codes), (NonFinite{1, 0})) << dtype_name(dtype);
  EXPECT_EQ(count_of(Dtype::F8_E8M0, std::vector<std::uint8_t>{0xff}), (NonFinite{1, 0}));
  EXPECT_EQ(count_of(Dtype::F8_E4M3FNUZ, std::vector<std::uint8_t>{0x80}), (NonFinite{1, 0}));
  EXPECT_EQ(count_of(Dtype::F8_E5M2FNUZ, std::vector<std::uint8_t>{0x80}), (NonFinite{1, 0}));
}

TEST(NonFinite, judges_wide_formats_as_the_processor_does) {
  std::mt19937_64 random(7);
  std::vector<float> floats(10'000);
  std::vector<double> doubles(10'000);
  NonFinite expected_floats, expected_doubles;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    // Every second one with the largest exponent, every 16th infinite.
    std::uint64_t bits = random();
    if (i % 2 == 0) bits |= 0x7ff0'0000'0000'0000;
    if (i % 16 == 0) bits &= 0xfff0'0000'0000'0000;
    doubles[i] = std::bit_cast<double>(bits);
    floats[i] = std::bit_cast<float>(
        static_cast<std::uint32_t>(i % 16 == 0 ? 0x7f800000 | bits >> 63 << 31 : bits >> 32 | 0x00100000));
    expected_floats += {std::isnan(floats[i]), std::isinf(floats[i])};
    expected_doubles += {std::isnan(doubles[i]), std::isinf(doubles[i])};
  }
  ASSERT_GT(expected_floats.nan, 1000u);
  ASSERT_GT(expected_doubles.infinite, 500u);

  EXPECT_EQ(count_of(Dtype::F32, floats), expected_floats);
  EXPECT_EQ(count_of(Dtype::C64, floats), expected_floats);
  EXPECT_EQ(count_of(Dtype::F64, doubles), expected_doubles);
}

TEST(NonFinite, counts_far_more_than_a_value_could_hold) {
  EXPECT_EQ(count_of(Dtype::F8_E4M3, std::vector<std::uint8_t>(100'000, 0x7f)), (NonFinite{100'000, 0}));
  EXPECT_EQ(count_of(Dtype::F8_E5M2, std::vector<std::uint8_t>(100'000, 0xfc)), (NonFinite{0, 100'000}));
  EXPECT_EQ(count_of(Dtype::BF16, std::vector<std::uint16_t>(200'000, 0x7fc0)), (NonFinite{200'000, 0}));
}

TEST(NonFinite, reads_values_at_any_address) {
  std::vector<std::byte> bytes(1 + 9 * sizeof(float));
  const std::vector<float> values(9, std::numeric_limits<float>::infinity());
  std::memcpy(bytes.data() + 1, values.data(), 9 * sizeof(float));

  EXPECT_EQ(count_non_finite(Dtype::F32, std::span(bytes).subspan(1)), (NonFinite{0, 9}));
}

TEST(NonFinite, finds_nothing_in_integers_and_in_formats_of_less_than_a_byte) {
  const std::vector<std::uint8_t> ones(64, 0xff);
  for (const Dtype dtype : {Dtype::BOOL, Dtype::U8, Dtype::I16, Dtype::I32, Dtype::I64, Dtype::F4,
                            Dtype::F6_E2M3, Dtype::F6_E3M2}) {
    EXPECT_EQ(count_of(dtype, ones), NonFinite()) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace sluice::bytes
