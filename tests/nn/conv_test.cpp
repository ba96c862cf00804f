#include "nn/conv.h"

#include "kernels/scratch.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>

namespace sluice::nn {
namespace {

Conv random_conv(at::IntArrayRef weight_shape, std::int64_t biases, at::ScalarType dtype = at::kFloat) {
  at::manual_seed(3);
  at::Tensor weight = at::randn(weight_shape) * 0.1;
  return {.weight = weight.to(dtype), .bias = at::randn({biases}).to(dtype)};
}

TEST(Conv, names_weight_and_bias_with_their_shapes) {
  weights::ParameterGroup group;
  Conv plain, transposed;
  declare(weights::ParameterScope(group, "a"), plain, {.in = 2, .out = 3, .kernel = {5, 7}});
  declare_transposed(weights::ParameterScope(group, "b"), transposed,
                     {.in = 2, .out = 3, .kernel = {4}, .bias = Bias::no});

  ASSERT_EQ(group.parameters.size(), 3u);
  EXPECT_EQ(group.parameters[0].name, "a.weight");
  EXPECT_THAT(group.parameters[0].shape, testing::ElementsAre(3, 2, 5, 7));
  EXPECT_EQ(group.parameters[1].name, "a.bias");
  EXPECT_THAT(group.parameters[2].shape, testing::ElementsAre(2, 3, 4));
}

TEST(Conv, convolves_over_one_two_and_three_axes) {
  Conv one = random_conv({4, 3, 3}, 4), two = random_conv({4, 3, 3, 1}, 4),
       three = random_conv({4, 3, 3, 3, 3}, 4);
  at::Tensor x1 = at::randn({2, 3, 9}), x2 = at::randn({2, 3, 7, 5}), x3 = at::randn({2, 3, 5, 6, 7});
  auto plain = [](const at::Tensor& x, const Conv& layer, at::IntArrayRef stride, at::IntArrayRef padding,
                  at::IntArrayRef dilation) {
    return at::convolution(x, layer.weight, layer.bias, stride, padding, dilation, false, {0}, 1);
  };

  at::Tensor y1 = conv(one, x1, {.padding = {2}, .dilation = {2}});
  at::Tensor y2 = conv(two, x2, {.padding = {1, 0}, .stride = {2, 1}});
  at::Tensor y3 = conv(three, x3, {.padding = {0, 1, 1}});

  EXPECT_LE(test::error_of_max(y1, plain(x1, one, {1}, {2}, {2})), 1e-6);
  EXPECT_LE(test::error_of_max(y2, plain(x2, two, {2, 1}, {1, 0}, {1})), 1e-6);
  EXPECT_LE(test::error_of_max(y3, plain(x3, three, {1}, {0, 1, 1}, {1})), 1e-6);
}

TEST(Conv, transposed_raises_the_rate) {
  Conv layer = random_conv({3, 4, 8}, 4);
  at::Tensor x = at::randn({2, 3, 9});

  at::Tensor y = conv_transposed(layer, x, {.padding = {2}, .stride = {4}});

  EXPECT_EQ(y.size(2), 36);
  EXPECT_LE(test::error_of_max(y, at::conv_transpose1d(x, layer.weight, layer.bias, 4, 2)), 1e-6);
}

TEST(Conv, keeps_channels_last) {
  Conv layer = random_conv({4, 3, 3, 3, 3}, 4);
  at::Tensor x = at::randn({1, 3, 5, 6, 7}).contiguous(at::MemoryFormat::ChannelsLast3d);

  at::Tensor y = conv(layer, x);

  EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast3d));
  EXPECT_LE(test::error_of_max(y, at::conv3d(x, layer.weight, layer.bias)), 1e-6);
}

TEST(Conv, widens_bf16_weights_for_f32_input) {
  Conv narrow = random_conv({4, 3, 3, 3, 3}, 4, at::kBFloat16);
  Conv wide = {.weight = narrow.weight.to(at::kFloat), .bias = narrow.bias.to(at::kFloat)};
  at::Tensor x = at::randn({1, 3, 5, 6, 7});
  at::Tensor last = x.contiguous(at::MemoryFormat::ChannelsLast3d);

  EXPECT_LE(test::error_of_max(conv(narrow, x), conv(wide, x)), 1e-6);
  EXPECT_LE(test::error_of_max(conv(narrow, last), conv(wide, x)), 1e-6);
}

// 176 MiB of widened weights: three groups of output channels, the last one shorter.
TEST(Conv, runs_large_weights_in_groups_of_output_channels) {
  const std::int64_t in = 640, out = 2000;
  Conv narrow = random_conv({out, in, 1, 6, 6}, out, at::kBFloat16);
  at::Tensor x = at::randn({1, in, 1, 6, 7});
  ASSERT_GT(narrow.weight.numel() * 4, 2 * kConvWeightTile);
  at::Tensor want = at::conv3d(x, narrow.weight.to(at::kFloat), narrow.bias.to(at::kFloat));

  kernels::release_scratch();
  std::int64_t peak = 0;
  at::Tensor got;
  {
    test::PeakAllocator allocator;
    got = conv(narrow, x);
    peak = allocator.peak();
  }
  kernels::release_scratch();

  EXPECT_LE(test::error_of_max(got, want), 1e-5);
  EXPECT_LE(peak, 2 * kConvWeightTile + (8 << 20));
}

TEST(PixelNorm, divides_by_the_root_of_the_mean_square_over_channels) {
  at::Tensor x = at::tensor({3.0F, 1.0F, 4.0F, 1.0F}).view({1, 2, 2});  // channels (3, 4) and (1, 1)

  at::Tensor y = pixel_norm_silu(x, 0);

  at::Tensor normed = at::tensor({3 / std::sqrt(12.5F), 1.0F, 4 / std::sqrt(12.5F), 1.0F}).view({1, 2, 2});
  EXPECT_LE(test::error_of_max(y, at::silu(normed)), 1e-6);
}

TEST(PixelNorm, is_finite_where_all_channels_are_zero) {
  EXPECT_TRUE(at::equal(pixel_norm_silu(at::zeros({1, 2, 3}), 1e-8), at::zeros({1, 2, 3})));
}

TEST(PixelNorm, rounds_to_bf16_once) {
  at::manual_seed(5);
  at::Tensor x = at::randn({1, 256, 4, 4}).to(at::kBFloat16);

  at::Tensor y = pixel_norm_silu(x, 1e-6);

  EXPECT_EQ(y.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(y, pixel_norm_silu(x.to(at::kFloat), 1e-6).to(at::kBFloat16)));
}

TEST(PixelNorm, writes_into_a_view) {
  at::Tensor x = at::randn({1, 3, 2, 4, 4});
  at::Tensor buffer = at::zeros({1, 3, 5, 4, 4});

  pixel_norm_silu_into(buffer.narrow(2, 2, 2), x, 1e-8);

  EXPECT_TRUE(at::equal(buffer.narrow(2, 2, 2), pixel_norm_silu(x, 1e-8)));
  EXPECT_TRUE(at::equal(buffer.narrow(2, 0, 2), at::zeros({1, 3, 2, 4, 4})));
}

}  // namespace
}  // namespace sluice::nn
