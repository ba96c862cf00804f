#include "weights/quantize/encode.h"

#include "bytes/plan/part_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <string>

namespace sluice::weights {
namespace {

using testing::Each;
using testing::ElementsAre;

const std::filesystem::path kFixtures = SLUICE_SOURCE_DIR "/tests/fixtures";

std::vector<std::byte> tensor(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo* info = checkpoint.find(name);
  if (info == nullptr) throw std::runtime_error(std::string(name) + " is missing");
  std::vector<std::byte> bytes(info->size);
  checkpoint.read(*info, bytes);
  return bytes;
}

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

struct Nf4 {
  std::vector<float> absmax;
  std::vector<std::byte> codes;
  bool operator==(const Nf4&) const = default;
};

template <typename Encode>
Nf4 nf4_of(Dtype dtype, std::span<const std::byte> values, Encode encode) {
  const std::size_t count = values.size() / (dtype_bits(dtype) / 8);
  Nf4 result{std::vector<float>((count + kNf4BlockValues - 1) / kNf4BlockValues),
             std::vector<std::byte>((count + 1) / 2)};
  encode(dtype, values, std::span(result.absmax), std::span(result.codes));
  return result;
}

Nf4 nf4_of(const std::vector<float>& values) {
  return nf4_of(Dtype::F32, bytes_of(values), encode_nf4);
}

TEST(Encode, gives_the_codes_and_absmax_of_every_nf4_fixture) {
  std::size_t cases = 0;
  for (const auto& folder : std::filesystem::directory_iterator(kFixtures / "quant_nf4")) {
    const Checkpoint io = Checkpoint::open(folder.path() / "io.safetensors");
    if (io.find("out.packed") == nullptr) continue;
    SCOPED_TRACE(folder.path().filename());
    ++cases;

    const Nf4 got = nf4_of(Dtype::F32, tensor(io, "in.weight"), encode_nf4);

    EXPECT_EQ(got.codes, tensor(io, "out.packed"));
    const auto absmax = std::as_bytes(std::span(got.absmax));
    EXPECT_EQ(std::vector(absmax.begin(), absmax.end()), tensor(io, "out.absmax"));
  }
  EXPECT_GE(cases, 6u);
}

TEST(Encode, gives_the_codes_and_scale_of_every_scaled_fp8_fixture) {
  for (const char* name : {"weight_scale", "scale_weight", "zeros"}) {
    SCOPED_TRACE(name);
    const Checkpoint io = Checkpoint::open(kFixtures / "quant_fp8" / name / "io.safetensors");
    const std::vector<std::byte> weight = tensor(io, "in.weight");
    std::vector<std::byte> codes(weight.size() / 4);

    const float scale = f8_e4m3_scale(largest_magnitude(Dtype::F32, weight));
    encode_f8_e4m3(Dtype::F32, weight, scale, codes);

    EXPECT_EQ(codes, tensor(io, "out.codes"));
    EXPECT_EQ(std::memcmp(&scale, tensor(io, "out.scale").data(), 4), 0) << scale;
  }
}

TEST(Encode, rounds_every_probe_of_the_fp8_table_as_the_reference) {
  const Checkpoint io = Checkpoint::open(kFixtures / "quant_fp8/table/io.safetensors");
  const std::vector<std::byte> probes = tensor(io, "in.probe");
  std::vector<std::byte> codes(probes.size() / 4);

  encode_f8_e4m3(Dtype::F32, probes, 1, codes);

  EXPECT_EQ(codes, tensor(io, "out.probe_code"));
}

TEST(Encode, takes_the_lower_code_on_a_threshold_and_the_upper_above_it) {
  std::vector<float> values = {1};  // the absmax
  for (float threshold : kNf4Thresholds) {
    values.push_back(threshold);
    values.push_back(std::nextafter(threshold, 2.0f));
  }
  const Nf4 got = nf4_of(values);

  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto both = std::to_integer<unsigned>(got.codes[i / 2]);
    EXPECT_EQ(i % 2 == 0 ? both >> 4 : both & 15, i / 2) << values[i];
  }
}

TEST(Encode, a_block_of_zeros_reads_back_as_zeros) {
  const Nf4 got = nf4_of(std::vector<float>(3, 0));

  EXPECT_THAT(got.absmax, ElementsAre(0));
  EXPECT_THAT(got.codes, ElementsAre(std::byte{0x77}, std::byte{0x77}));
}

TEST(Encode, shows_nan_and_infinity_wherever_they_are) {
  for (const float bad : {NAN, INFINITY, -INFINITY}) {
    for (std::size_t place : {0u, 5u, 63u, 64u, 99u}) {
      std::vector<float> values(100, 1);
      values[place] = bad;

      EXPECT_FALSE(std::isfinite(largest_magnitude(Dtype::F32, bytes_of(values))));
      EXPECT_FALSE(std::isfinite(nf4_of(values).absmax[place / kNf4BlockValues]));
      const auto found = first_non_finite(Dtype::F32, bytes_of(values));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->element, place);
      EXPECT_EQ(found->nan, std::isnan(bad));
    }
  }
}

// Values of many sizes, now and then zero, and some that are equal in share to a threshold.
std::vector<float> random_values(std::mt19937& random, std::size_t count) {
  std::normal_distribution<float> normal(0, 1);
  std::uniform_int_distribution<int> exponent(-140, 120), pick(0, 20);
  const float size = std::ldexp(1.0f, exponent(random));
  std::vector<float> values(count);
  for (float& value : values) {
    const int kind = pick(random);
    value = kind == 0   ? 0
            : kind == 1 ? kNf4Thresholds[static_cast<std::size_t>(pick(random)) % 15] * size
                        : normal(random) * size;
  }
  return values;
}

TEST(Encode, vectors_and_plain_loops_agree_in_every_dtype_count_and_address) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_int_distribution<std::size_t> counts(0, 300), shifts(0, 7);
  for (int round = 0; round < 400; ++round) {
    const std::vector<float> values = random_values(random, counts(random));
    for (const Dtype dtype : {Dtype::BF16, Dtype::F16, Dtype::F32, Dtype::F64}) {
      SCOPED_TRACE(dtype_name(dtype));
      const std::size_t shift = shifts(random);
      std::vector<std::byte> memory(shift + values.size() * dtype_bits(dtype) / 8);
      const auto stored = std::span(memory).subspan(shift);
      bytes::cast_elements(Dtype::F32, bytes_of(values), dtype, stored);
      if (first_non_finite(dtype, stored)) continue;  // too large for F16

      const float largest = largest_magnitude(dtype, stored);
      EXPECT_EQ(largest, reference::largest_magnitude(dtype, stored));
      EXPECT_EQ(nf4_of(dtype, stored, encode_nf4), nf4_of(dtype, stored, reference::encode_nf4));
      std::vector<std::byte> codes(values.size()), plain(values.size());
      encode_f8_e4m3(dtype, stored, f8_e4m3_scale(largest), codes);
      reference::encode_f8_e4m3(dtype, stored, f8_e4m3_scale(largest), plain);
      EXPECT_EQ(codes, plain);
    }
  }
}

TEST(Encode, agrees_with_the_quantizing_load) {
  std::mt19937 random(7);
  const std::vector<float> values = random_values(random, 5000);
  std::vector<std::byte> codes(values.size()), loaded(values.size());

  const float scale = f8_e4m3_scale(largest_magnitude(Dtype::F32, bytes_of(values)));
  encode_f8_e4m3(Dtype::F32, bytes_of(values), scale, codes);

  EXPECT_EQ(bytes::quantize_to_f8_e4m3(Dtype::F32, bytes_of(values), loaded, "t"), scale);
  EXPECT_EQ(codes, loaded);
}

}  // namespace
}  // namespace sluice::weights
