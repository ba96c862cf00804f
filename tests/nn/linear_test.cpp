#include "nn/layers.h"

#include "kernels/widen.h"
#include "weights/quantize/encode.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sluice::nn {
namespace {

std::span<const std::byte> bytes_of(const at::Tensor& x) {
  return {static_cast<const std::byte*>(x.const_data_ptr()), x.nbytes()};
}
std::span<std::byte> bytes_of(at::Tensor& x) {
  return {static_cast<std::byte*>(x.mutable_data_ptr()), x.nbytes()};
}

void quantize_fp8(Linear& layer, const at::Tensor& values) {
  const float scale = weights::f8_e4m3_scale(weights::largest_magnitude(Dtype::F32, bytes_of(values)));
  at::Tensor codes = at::empty(values.sizes(), at::kByte);
  weights::encode_f8_e4m3(Dtype::F32, bytes_of(values), scale, bytes_of(codes));
  layer.weight = codes.view(at::kFloat8_e4m3fn);
  layer.scales = at::scalar_tensor(scale, at::kFloat);
}

void quantize_nf4(Linear& layer, const at::Tensor& values) {
  layer.weight = at::empty({(values.numel() + 1) / 2, 1}, at::kByte);
  layer.scales = at::empty({(values.numel() + 63) / 64}, at::kFloat);
  weights::encode_nf4(
      Dtype::F32, bytes_of(values),
      {layer.scales.mutable_data_ptr<float>(), static_cast<std::size_t>(layer.scales.numel())},
      bytes_of(layer.weight));
}

double error_of(const at::Tensor& got, const at::Tensor& want) {
  return ((got - want).norm() / want.norm()).item<double>();
}

TEST(Linear, of_quantized_weights_is_near_that_of_the_weights_themselves) {
  at::manual_seed(4);
  const at::Tensor values = at::randn({48, 200}), x = at::randn({7, 200});
  Linear dense{.weight = values, .bias = at::randn({48}), .in = 200, .out = 48};
  const at::Tensor want = linear(dense, x);

  Linear fp8 = dense, nf4 = dense;
  quantize_fp8(fp8, values);
  quantize_nf4(nf4, values);

  // Rounding errors of three bits of mantissa, and of sixteen values for a normal distribution.
  EXPECT_LT(error_of(linear(fp8, x), want), 0.04);
  EXPECT_LT(error_of(linear(nf4, x), want), 0.12);
  EXPECT_GT(error_of(linear(nf4, x), want), error_of(linear(fp8, x), want));
}

TEST(Linear, of_quantized_weights_is_that_of_the_widened_weights) {
  at::manual_seed(4);
  const at::Tensor values = at::randn({48, 200}), x = at::randn({7, 200});
  Linear layer{.bias = at::randn({48}), .in = 200, .out = 48};
  quantize_nf4(layer, values);
  Linear wide = layer;
  wide.weight = at::empty({48, 200});
  wide.scales = at::Tensor();
  kernels::widen_rows(matrix(layer), 0, 48, wide.weight);

  EXPECT_TRUE(at::equal(linear(layer, x), linear(wide, x)));
  EXPECT_TRUE(at::equal(linear_gelu_tanh(layer, x), linear_gelu_tanh(wide, x)));
}

TEST(Linear, of_a_range_of_rows_has_as_many_outputs) {
  weights::ParameterGroup group;
  Linear layer;

  declare(weights::ParameterScope(group) / "table", layer,
          {.in = 64, .out = 10, .bias = Bias::yes, .rows = {.begin = 2, .count = 3}});

  EXPECT_EQ(layer.out, 3);
  ASSERT_EQ(group.parameters.size(), 2u);
  EXPECT_EQ(group.parameters[0].shape, (std::vector<std::int64_t>{10, 64}));
  EXPECT_EQ(group.parameters[0].scales, &layer.scales);
  for (const weights::Parameter& parameter : group.parameters) {
    EXPECT_EQ(parameter.rows.begin, 2);
    EXPECT_EQ(parameter.rows.count, 3);
  }
}

}  // namespace
}  // namespace sluice::nn
