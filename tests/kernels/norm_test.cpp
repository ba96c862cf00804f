#include "kernels/norm.h"

#include "support/cpu_path_scope.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

#include <limits>
#include <ostream>

namespace sluice::kernels {
namespace {

struct Shape {
  std::int64_t batch, tokens, heads, head_dim;
};

void PrintTo(const Shape& s, std::ostream* out) {
  *out << s.batch << "x" << s.tokens << "x" << s.heads << "x" << s.head_dim;
}

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a.to(at::kDouble) - b.to(at::kDouble)).abs().max() / b.to(at::kDouble).abs().max()).item<double>();
}

class NormOf : public ::testing::TestWithParam<Shape> {
 protected:
  void SetUp() override {
    at::manual_seed(3);
    const auto [batch, tokens, heads, head_dim] = GetParam();
    x = at::randn({batch, tokens, heads * head_dim}) * 3;
    weight = at::randn({heads * head_dim});
    scale = at::randn({batch, 1, heads * head_dim});
    shift = at::randn({1, tokens, heads * head_dim});
    const at::Tensor angles = at::randn({1, heads, tokens, head_dim / 2});
    rotation = {angles.cos(), angles.sin()};
  }

  at::Tensor rotated(at::ScalarType dtype, const SplitRotation& by) const {
    at::Tensor y = x.to(dtype, /*non_blocking=*/false, /*copy=*/true);
    rms_norm_rotate_(y, 1e-6, weight.to(dtype), by);
    return y;
  }
  // In f64, of the values as `dtype` holds them.
  at::Tensor truth(at::ScalarType dtype, const SplitRotation& by) const {
    at::Tensor y = x.to(dtype).to(at::kDouble, false, true);
    reference::rms_norm_rotate_(y, 1e-6, weight.to(dtype), by);
    return y;
  }

  at::Tensor x, weight, scale, shift;
  SplitRotation rotation;
};

TEST_P(NormOf, norm_and_modulation_are_the_formula) {
  const at::Tensor expected = reference::rms_norm_modulated(x, 1e-6, scale, shift);

  EXPECT_LT(difference(rms_norm_modulated(x, 1e-6, scale, shift), expected), 1e-6);
}

TEST_P(NormOf, norm_and_modulation_in_bf16_round_once) {
  const auto b = at::kBFloat16;
  const at::Tensor expected = reference::rms_norm_modulated(
      x.to(b).to(at::kFloat), 1e-6, scale.to(b).to(at::kFloat), shift.to(b).to(at::kFloat));

  const at::Tensor ours = rms_norm_modulated(x.to(b), 1e-6, scale.to(b), shift.to(b));

  EXPECT_TRUE(((ours.to(at::kFloat) - expected).abs() <= expected.abs() / 255 + 1e-6).all().item<bool>());
}

TEST_P(NormOf, every_norm_with_any_modulation_is_the_formula_on_every_path) {
  const auto [batch, tokens, heads, head_dim] = GetParam();
  const RowVectors by_index(at::randn({3, heads * head_dim}), at::randint(0, 3, {batch * tokens}, at::kLong));
  for (const CpuPath path : cpu_paths()) {
    const testing::CpuPathScope scope(path);
    for (const RowNorm norm : {RowNorm::none, RowNorm::rms, RowNorm::layer}) {
      for (const Modulated& by : {Modulated{norm, 1e-5, {}, {}}, Modulated{norm, 1e-5, scale, shift},
                                  Modulated{norm, 1e-5, by_index, {}}, Modulated{norm, 1e-5, {}, by_index}}) {
        at::Tensor y = at::empty({batch, tokens, heads * head_dim + 3}).narrow(2, 0, heads * head_dim);

        norm_modulated(x, by, y);

        const at::Tensor expected = reference::norm_modulated(x, by);
        EXPECT_TRUE(at::allclose(y, expected, 1e-4, 1e-5)) << name(path) << ", " << static_cast<int>(norm);
      }
    }
  }
}

TEST_P(NormOf, norm_and_rotation_are_the_formula) {
  EXPECT_LT(difference(rotated(at::kFloat, rotation), truth(at::kFloat, rotation)), 2e-6);
  EXPECT_LT(difference(rotated(at::kFloat, {}), truth(at::kFloat, {})), 2e-6);
}

TEST_P(NormOf, norm_and_rotation_in_bf16_are_near_the_formula) {
  EXPECT_LT(difference(rotated(at::kBFloat16, rotation), truth(at::kBFloat16, rotation)), 1.0 / 256);
}

TEST_P(NormOf, a_rotation_for_each_batch_is_taken_from_its_own_table) {
  const std::int64_t batch = GetParam().batch;
  const at::Tensor angles =
      at::randn({batch, rotation.cos.size(1), rotation.cos.size(2), rotation.cos.size(3)});
  const SplitRotation each{angles.cos(), angles.sin()};

  EXPECT_LT(difference(rotated(at::kFloat, each), truth(at::kFloat, each)), 2e-6);
}

TEST_P(NormOf, shows_non_finite_input) {
  x.select(2, 0).fill_(std::numeric_limits<float>::quiet_NaN());

  EXPECT_TRUE(at::isnan(rms_norm_modulated(x, 1e-6, scale, shift)).all().item<bool>());
  EXPECT_TRUE(at::isnan(rotated(at::kBFloat16, rotation)).all().item<bool>());
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormOf,
                         ::testing::Values(Shape{1, 1, 1, 2}, Shape{2, 3, 2, 8}, Shape{1, 40, 4, 32},
                                           Shape{2, 17, 3, 38}, Shape{1, 5, 32, 128}));

}  // namespace
}  // namespace sluice::kernels
