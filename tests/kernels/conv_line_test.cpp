#include "kernels/conv_line.h"

#include "support/cpu_path_scope.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sluice::kernels {
namespace {

using testing::CpuPathScope;

struct Sizes {
  std::int64_t rows, in, out, taps;
  std::int64_t dilation = 1, stride = 1, padding = 0;
  bool transposed = false;
};

std::string describe(const Sizes& s) {
  return fmt::format("{} rows, {} to {} channels, {} taps, dilation {}, stride {}, padding {}{}", s.rows,
                     s.in, s.out, s.taps, s.dilation, s.stride, s.padding,
                     s.transposed ? ", transposed" : "");
}

// A convolution of random values at addresses that are not aligned to vectors.
class Case {
 public:
  explicit Case(const Sizes& sizes, unsigned seed = 1) : sizes_(sizes), random_(seed) {
    weights_ = values(sizes.in * sizes.out * sizes.taps);
    bias_ = values(sizes.out);
    conv = {.weights = {.values = {.values = reinterpret_cast<const std::byte*>(weights_.data() + 1)},
                        .out = sizes.out,
                        .in = sizes.in,
                        .taps = sizes.taps,
                        .transposed = sizes.transposed},
            .bias = bias_.data() + 1,
            .dilation = sizes.dilation,
            .stride = sizes.stride,
            .padding = sizes.padding};
    reach_ = line_reach(conv);
    x_.assign(static_cast<std::size_t>((reach_.before + sizes.rows + reach_.behind) * sizes.in + 1), 0);
    std::uniform_real_distribution<float> value(-1, 1);
    for (std::int64_t i = 0; i < sizes.rows * sizes.in; ++i) x()[i] = value(random_);
    added_ = values(y_values());
  }

  float* x() { return x_.data() + 1 + reach_.before * sizes_.in; }
  std::int64_t y_values() const { return line_rows(conv, sizes_.rows) * sizes_.out; }
  LineInput input() { return {.rows = sizes_.rows, .x = x()}; }

  template <typename Run>
  std::vector<float> result(const Run& run) {
    std::vector<float> y = added_;  // what is added is y itself
    run(LineResult{.y = y.data() + 1, .added = {y.data() + 1, added_.data() + 1}, .scale = 0.5F});
    return y;
  }
  std::vector<float> expected() {
    return result([&](const LineResult& result) { reference::conv_line(conv, input(), result); });
  }
  std::vector<float> of_whole() {
    return result([&](const LineResult& result) { conv_line(conv, input(), result); });
  }
  std::vector<float> of_pieces() {
    return result([&](const LineResult& result) {
      conv_line(
          conv, sizes_.rows,
          [&](std::int64_t begin, std::int64_t end, float* to) {
            std::copy_n(x() + begin * sizes_.in, (end - begin) * sizes_.in, to);
          },
          result);
    });
  }

  LineConv conv;

 private:
  std::vector<float> values(std::int64_t count) {
    std::uniform_real_distribution<float> value(-1, 1);
    std::vector<float> result(static_cast<std::size_t>(count + 1));
    for (float& v : result) v = value(random_);
    return result;
  }

  Sizes sizes_;
  std::mt19937 random_;
  LineReach reach_;
  std::vector<float> weights_, bias_, x_, added_;
};

const Sizes kSizes[] = {
    {.rows = 1, .in = 1, .out = 1, .taps = 1},
    {.rows = 1, .in = 3, .out = 2, .taps = 7, .padding = 3},
    {.rows = 53, .in = 24, .out = 24, .taps = 11, .dilation = 5, .padding = 25},
    {.rows = 400, .in = 16, .out = 16, .taps = 3, .padding = 1},
    {.rows = 97, .in = 5, .out = 33, .taps = 3, .dilation = 3, .padding = 3},
    {.rows = 97, .in = 17, .out = 48, .taps = 7, .dilation = 2},  // no padding: fewer rows than x
    {.rows = 20, .in = 5, .out = 3, .taps = 3, .padding = 4},     // more rows than x
    {.rows = 210, .in = 150, .out = 160, .taps = 11, .dilation = 5, .padding = 25},  // not in cache at once
    {.rows = 60, .in = 500, .out = 40, .taps = 9, .padding = 4},                     // in parts
    {.rows = 31, .in = 12, .out = 20, .taps = 11, .stride = 5, .padding = 3, .transposed = true},
    {.rows = 31, .in = 12, .out = 33, .taps = 4, .stride = 2, .padding = 1, .transposed = true},
    {.rows = 7, .in = 3, .out = 2, .taps = 6, .stride = 3, .padding = 1, .transposed = true},
    {.rows = 9, .in = 3, .out = 2, .taps = 2, .stride = 3, .transposed = true},  // a phase without taps
    {.rows = 40, .in = 600, .out = 60, .taps = 11, .stride = 5, .padding = 3, .transposed = true},
};

void expect_close(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) ASSERT_NEAR(actual[i], expected[i], 2e-4) << "at " << i;
}

TEST(ConvLine, equals_the_plain_twin_on_every_path_whole_and_in_pieces) {
  for (const Sizes& sizes : kSizes) {
    Case line(sizes);
    const std::vector<float> expected = line.expected();
    for (const CpuPath path : cpu_paths()) {
      SCOPED_TRACE(fmt::format("{}: {}", name(path), describe(sizes)));
      const CpuPathScope scope(path);

      expect_close(line.of_whole(), expected);
      expect_close(line.of_pieces(), expected);
    }
  }
}

TEST(ConvLine, takes_pieces_only_where_weights_are_few) {
  Case few(kSizes[2]), many(kSizes[7]);

  EXPECT_TRUE(takes_pieces(few.conv));
  EXPECT_FALSE(takes_pieces(many.conv));
}

TEST(ConvLine, gives_the_same_bits_whatever_the_number_of_threads) {
  for (const Sizes& sizes : {kSizes[3], kSizes[7], kSizes[13]}) {
    Case line(sizes);
    const int threads = at::get_num_threads();
    at::set_num_threads(1);
    const std::vector<float> alone = line.of_whole();
    at::set_num_threads(5);
    const std::vector<float> together = line.of_whole(), pieces = line.of_pieces();
    at::set_num_threads(threads);

    EXPECT_EQ(alone, together) << describe(sizes);
    EXPECT_EQ(alone, pieces) << describe(sizes);
  }
}

TEST(ConvLine, reads_overlapping_rows_and_writes_rows_at_a_distance) {
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    Case line({.rows = 30, .in = 18, .out = 20, .taps = 1});  // of values 5 apart
    std::vector<float> got(30 * 23, 7), want = got;
    const LineInput input = {.rows = 30, .x = line.x(), .stride = 5};

    conv_line(line.conv, input, {.y = got.data(), .stride = 23});

    reference::conv_line(line.conv, input, {.y = want.data(), .stride = 23});
    expect_close(got, want);
  }
}

TEST(ConvLine, keeps_NaN_and_infinities_where_taps_see_them) {
  const float odd[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()};
  for (const CpuPath path : cpu_paths()) {
    const CpuPathScope scope(path);
    for (const float value : odd) {
      Case line({.rows = 40, .in = 20, .out = 24, .taps = 3, .dilation = 4, .padding = 4});
      line.x()[17 * 20 + 3] = value;

      const std::vector<float> y = line.of_whole();

      for (std::int64_t row = 0; row < 40; ++row)
        EXPECT_EQ(std::isfinite(y[static_cast<std::size_t>(1 + row * 24)]),
                  row != 13 && row != 17 && row != 21)
            << name(path) << ", row " << row;
    }
  }
}

TEST(ConvLine, of_bf16_weights_is_the_same_as_of_their_values) {
  Case line({.rows = 64, .in = 24, .out = 40, .taps = 7, .padding = 3});
  std::vector<std::uint16_t> narrow(24 * 40 * 7);
  std::vector<float> wide(narrow.size());
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    narrow[i] = static_cast<std::uint16_t>(0x3d00 + i % 97);
    const std::uint32_t bits = std::uint32_t{narrow[i]} << 16;
    std::memcpy(&wide[i], &bits, 4);
  }
  line.conv.weights.values = {.format = Stored::f32,
                              .values = reinterpret_cast<const std::byte*>(wide.data())};
  const std::vector<float> want = line.of_whole();
  line.conv.weights.values = {.format = Stored::bf16,
                              .values = reinterpret_cast<const std::byte*>(narrow.data())};

  EXPECT_EQ(line.of_whole(), want);
}

}  // namespace
}  // namespace sluice::kernels
