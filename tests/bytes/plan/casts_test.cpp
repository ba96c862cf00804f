#include "bytes/plan/part_copy.h"

#include "support/small_floats.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace sluice::bytes {
namespace {

using test::SmallFloats;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::array kSmall = {Dtype::F16, Dtype::BF16, Dtype::F8_E5M2, Dtype::F8_E4M3};
constexpr std::array kFloats = {Dtype::F64,  Dtype::F32,     Dtype::F16,
                                Dtype::BF16, Dtype::F8_E5M2, Dtype::F8_E4M3};

template <typename To, typename From>
std::vector<To> cast_all(Dtype from_dtype, const std::vector<From>& from, Dtype to_dtype) {
  std::vector<To> to(from.size());
  cast_elements(from_dtype, std::as_bytes(std::span(from)), to_dtype, std::as_writable_bytes(std::span(to)));
  return to;
}

// Codes of a small format, whatever its size, as 32 bits.
std::vector<std::uint32_t> widened(Dtype dtype, const std::vector<std::byte>& bytes) {
  const std::size_t size = dtype_bits(dtype) / 8;
  std::vector<std::uint32_t> codes(bytes.size() / size, 0);
  for (std::size_t i = 0; i < codes.size(); ++i) std::memcpy(&codes[i], &bytes[i * size], size);
  return codes;
}

template <typename From>
std::vector<std::uint32_t> cast_to_codes(Dtype from_dtype, const std::vector<From>& from, Dtype to_dtype) {
  std::vector<std::byte> to(std::as_bytes(std::span(from)).size() / (dtype_bits(from_dtype) / 8) *
                            (dtype_bits(to_dtype) / 8));
  cast_elements(from_dtype, std::as_bytes(std::span(from)), to_dtype, to);
  return widened(to_dtype, to);
}

// All codes of a small format, as a file holds them.
std::vector<std::byte> every_code(Dtype dtype) {
  const std::size_t size = dtype_bits(dtype) / 8, codes = SmallFloats(dtype).codes();
  std::vector<std::byte> bytes(codes * size);
  for (std::uint32_t code = 0; code < codes; ++code) std::memcpy(&bytes[code * size], &code, size);
  return bytes;
}

// NaN as NaN, everything else to the bit.
template <typename Value>
void expect_codes(const SmallFloats& format, const std::vector<Value>& values,
                  const std::vector<std::uint32_t>& codes) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool right = std::isnan(values[i]) ? format.is_nan(codes[i]) : codes[i] == format.encode(values[i]);
    if (!right && ++wrong < 10) ADD_FAILURE() << values[i] << " became " << codes[i];
  }
  EXPECT_EQ(wrong, 0u);
}

class EverySmallFloat : public ::testing::TestWithParam<Dtype> {};
INSTANTIATE_TEST_SUITE_P(Casts, EverySmallFloat, ::testing::ValuesIn(kSmall),
                         [](const auto& info) { return std::string(dtype_name(info.param)); });

TEST_P(EverySmallFloat, has_its_exact_value_as_f64_and_f32) {
  const SmallFloats format(GetParam());
  const auto codes = every_code(GetParam());
  const auto as_f64 = cast_all<double>(GetParam(), codes, Dtype::F64);
  std::vector<float> as_f32(format.codes());
  cast_elements(GetParam(), codes, Dtype::F32, std::as_writable_bytes(std::span(as_f32)));

  std::size_t wrong = 0;
  for (std::uint32_t code = 0; code < format.codes(); ++code) {
    const double value = format.decode(code);
    for (double cast : {as_f64[code], static_cast<double>(as_f32[code])}) {
      const bool same =
          std::isnan(value) ? std::isnan(cast) : cast == value && std::signbit(cast) == std::signbit(value);
      if (!same && ++wrong < 10) ADD_FAILURE() << "code " << code << " became " << cast;
    }
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_P(EverySmallFloat, is_rounded_to_the_nearest_of_every_other_small_format) {
  const SmallFloats from(GetParam());
  std::vector<double> values;
  for (std::uint32_t code = 0; code < from.codes(); ++code) values.push_back(from.decode(code));

  for (Dtype to : kSmall) {
    SCOPED_TRACE(dtype_name(to));
    if (to == GetParam()) continue;
    expect_codes(SmallFloats(to), values, cast_to_codes(GetParam(), every_code(GetParam()), to));
  }
}

TEST_P(EverySmallFloat, is_the_nearest_of_f32_values_around_every_border) {
  const SmallFloats format(GetParam());
  std::vector<float> values;
  for (double border : format.borders()) {
    const auto value = static_cast<float>(border);
    values.insert(values.end(), {std::nextafter(value, -INFINITY), value, std::nextafter(value, INFINITY)});
  }

  expect_codes(format, values, cast_to_codes(Dtype::F32, values, GetParam()));
}

TEST_P(EverySmallFloat, is_the_nearest_of_f64_values_which_are_rounded_once) {
  const SmallFloats format(GetParam());
  const std::vector<double> values = format.borders();

  expect_codes(format, values, cast_to_codes(Dtype::F64, values, GetParam()));
}

TEST_P(EverySmallFloat, is_the_nearest_of_random_bits) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::vector<float> f32(1 << 16);
  std::vector<double> f64(1 << 16);
  for (float& value : f32) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  // Exponents of every format here, and some beyond.
  std::uniform_real_distribution<double> exponent(-170, 150), mantissa(-2, 2);
  for (double& value : f64) value = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));

  expect_codes(SmallFloats(GetParam()), f32, cast_to_codes(Dtype::F32, f32, GetParam()));
  expect_codes(SmallFloats(GetParam()), f64, cast_to_codes(Dtype::F64, f64, GetParam()));
}

// As torch 2.13 converts these.
TEST(Casts, to_f8_e4m3_saturate_as_pytorch_does) {
  const std::vector<float> values = {448,       449,  464,           480,           1e9f,          INFINITY,
                                     -INFINITY, -470, 0.0009765625f, 0.0009766602f, 0.0029296875f, -0.0f};

  EXPECT_THAT(cast_to_codes(Dtype::F32, values, Dtype::F8_E4M3),
              ElementsAre(0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0xfe, 0xfe, 0x00, 0x01, 0x02, 0x80));
  EXPECT_THAT(cast_to_codes(Dtype::F32, std::vector<float>{NAN}, Dtype::F8_E4M3), ElementsAre(0x7f));
}

TEST(Casts, to_f8_e5m2_overflow_to_infinity_as_pytorch_does) {
  const std::vector<float> values = {57344, 61439, 61440, 65504, -INFINITY, 7.62939453125e-06f};

  EXPECT_THAT(cast_to_codes(Dtype::F32, values, Dtype::F8_E5M2),
              ElementsAre(0x7b, 0x7b, 0x7c, 0x7c, 0xfc, 0x00));
}

TEST(Casts, from_f64_to_f32_are_to_the_nearest) {
  const std::vector<double> values = {1 + 0x1p-24, 1 + 0x1.8p-23, 1e300, 0x1p-150, -0.1};

  EXPECT_THAT(cast_all<float>(Dtype::F64, values, Dtype::F32),
              ElementsAre(1.0f, 1 + 0x1p-22f, INFINITY, 0.0f, -0.1f));
}

TEST(Casts, read_and_write_at_any_address) {
  for (Dtype from : kFloats) {
    for (Dtype to : kFloats) {
      SCOPED_TRACE(std::string(dtype_name(from)) + " to " + std::string(dtype_name(to)));
      const std::size_t from_size = dtype_bits(from) / 8, to_size = dtype_bits(to) / 8, count = 37;
      std::vector<std::byte> in(1 + count * from_size), aligned(count * to_size), out(1 + count * to_size);
      for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i * 7 % 120);
      const std::vector<std::byte> in_aligned(in.begin() + 1, in.end());

      cast_elements(from, in_aligned, to, aligned);
      cast_elements(from, std::span(in).subspan(1), to, std::span(out).subspan(1));

      EXPECT_EQ(std::vector(out.begin() + 1, out.end()), aligned);
    }
  }
}

TEST(Casts, of_no_elements_and_to_the_same_dtype_copy) {
  cast_elements(Dtype::F32, {}, Dtype::F16, {});
  cast_elements(Dtype::C64, {}, Dtype::C64, {});

  EXPECT_THAT(cast_all<std::uint64_t>(Dtype::C64, std::vector<std::uint64_t>{7, ~0ull}, Dtype::C64),
              ElementsAre(7, ~0ull));
}

TEST(Casts, of_integers_are_those_that_lose_no_value) {
  EXPECT_TRUE(can_cast(Dtype::I8, Dtype::I16));
  EXPECT_TRUE(can_cast(Dtype::U8, Dtype::I16));
  EXPECT_TRUE(can_cast(Dtype::U32, Dtype::I64));
  EXPECT_TRUE(can_cast(Dtype::BOOL, Dtype::I8));
  EXPECT_TRUE(can_cast(Dtype::U64, Dtype::U64));
  EXPECT_FALSE(can_cast(Dtype::I8, Dtype::U64));
  EXPECT_FALSE(can_cast(Dtype::U8, Dtype::I8));
  EXPECT_FALSE(can_cast(Dtype::I64, Dtype::I32));
  EXPECT_FALSE(can_cast(Dtype::U8, Dtype::BOOL));
  EXPECT_FALSE(can_cast(Dtype::I32, Dtype::F64));
  EXPECT_FALSE(can_cast(Dtype::F32, Dtype::I64));
  EXPECT_FALSE(can_cast(Dtype::F8_E8M0, Dtype::F32));
  EXPECT_TRUE(can_cast(Dtype::F8_E8M0, Dtype::F8_E8M0));
}

TEST(Casts, of_integers_keep_the_value_and_its_sign) {
  EXPECT_THAT(cast_all<std::int64_t>(Dtype::I8, std::vector<std::int8_t>{-128, -1, 0, 127}, Dtype::I64),
              ElementsAre(-128, -1, 0, 127));
  EXPECT_THAT(cast_all<std::int32_t>(Dtype::U16, std::vector<std::uint16_t>{0, 65535}, Dtype::I32),
              ElementsAre(0, 65535));
  EXPECT_THAT(cast_all<std::int64_t>(Dtype::I32, std::vector<std::int32_t>{INT32_MIN, 5}, Dtype::I64),
              ElementsAre(INT32_MIN, 5));
}

TEST(Casts, of_booleans_make_one_of_any_byte_that_is_not_zero) {
  EXPECT_THAT(cast_all<std::int16_t>(Dtype::BOOL, std::vector<std::uint8_t>{0, 1, 2, 255}, Dtype::I16),
              ElementsAre(0, 1, 1, 1));
}

// The code of each value, and the scale.
struct Quantized {
  float scale;
  std::vector<std::uint8_t> codes;
};

template <typename From>
Quantized quantize(Dtype dtype, const std::vector<From>& from) {
  std::vector<std::uint8_t> codes(std::as_bytes(std::span(from)).size() / (dtype_bits(dtype) / 8));
  const float scale = quantize_to_f8_e4m3(dtype, std::as_bytes(std::span(from)),
                                          std::as_writable_bytes(std::span(codes)), "t");
  return {scale, codes};
}

TEST(Quantize, brings_the_largest_magnitude_to_448) {
  const Quantized quantized = quantize(Dtype::F32, std::vector<float>{896, -896, 2, 0, -0.0f, 1});

  EXPECT_EQ(quantized.scale, 2);
  EXPECT_THAT(quantized.codes, ElementsAre(0x7e, 0xfe, 0x38, 0x00, 0x80, 0x30));
}

TEST(Quantize, of_zeros_or_of_nothing_has_scale_one) {
  EXPECT_EQ(quantize(Dtype::F16, std::vector<std::uint16_t>{0, 0x8000}).scale, 1);
  EXPECT_EQ(quantize(Dtype::F32, std::vector<float>{}).scale, 1);
}

TEST(Quantize, rounds_value_by_scale_to_the_nearest) {
  const SmallFloats e4m3(Dtype::F8_E4M3);
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> values(5000);
  for (float& value : values) value = normal(random);

  const Quantized quantized = quantize(Dtype::F32, values);

  float largest = 0;
  for (float value : values) largest = std::max(largest, std::abs(value));
  EXPECT_EQ(quantized.scale, largest / 448);
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(quantized.codes[i], e4m3.encode(values[i] / quantized.scale)) << values[i];  // divided in F32
}

TEST(Quantize, of_the_least_numbers_stays_finite) {
  const Quantized quantized = quantize(Dtype::F32, std::vector<float>{0x1p-149f, -0x1p-120f});

  EXPECT_EQ(quantized.scale, 0x1p-126f);
  EXPECT_THAT(quantized.codes, ElementsAre(0x00, 0xe8));
}

TEST(Quantize, of_numbers_that_are_not_finite_is_refused_naming_tensor_and_element) {
  std::vector<float> values(3000, 1.0f);
  values[2500] = NAN;
  EXPECT_THAT([&] { quantize(Dtype::F32, values); },
              ThrowsError(ErrorKind::non_finite, HasSubstr("tensor 't' has NaN at element 2500")));

  values[2500] = -INFINITY;
  EXPECT_THAT([&] { quantize(Dtype::F32, values); },
              ThrowsError(ErrorKind::non_finite, HasSubstr("infinity at element 2500")));
  EXPECT_THAT([&] { quantize(Dtype::F64, std::vector<double>{1e300}); },
              ThrowsError(ErrorKind::non_finite, HasSubstr("1e+300")));
}

}  // namespace
}  // namespace sluice::bytes
