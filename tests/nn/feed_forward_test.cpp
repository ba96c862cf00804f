#include "nn/layers.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sluice::nn {
namespace {

TEST(FeedForward, pieces_of_many_tokens_give_what_the_tokens_give_alone) {
  at::manual_seed(1);
  constexpr std::int64_t kDim = 8, kInner = 1 << 20, kTokens = 20;  // a piece holds 16 rows of 4 MiB
  const FeedForward layer{
      .up = {.weight = at::randn({kInner, kDim}), .bias = at::randn({kInner}), .in = kDim, .out = kInner},
      .down = {
          .weight = at::randn({kDim, kInner}) / 1024, .bias = at::randn({kDim}), .in = kInner, .out = kDim}};
  const at::Tensor x = at::randn({2, kTokens / 2, kDim});

  const at::Tensor y = feed_forward(layer, x);

  ASSERT_EQ(y.sizes(), x.sizes());
  const at::Tensor alone =
      at::cat({feed_forward(layer, x.slice(0, 0, 1)), feed_forward(layer, x.slice(0, 1, 2))});
  EXPECT_TRUE(at::allclose(y, alone, 1e-4, 1e-4));
}

}  // namespace
}  // namespace sluice::nn
