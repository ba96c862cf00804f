#include "nn/layers.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sluice::nn {
namespace {

TEST(FeedForward, pieces_of_many_tokens_give_what_the_tokens_give_alone) {
  at::manual_seed(1);
  constexpr std::int64_t kDim = 8, kInner = 1 << 20, kTokens = 40;  // a piece holds 16 rows of 4 MiB
  const FeedForward layer{
      .up = {.weight = at::randn({kInner, kDim}), .bias = at::randn({kInner}), .in = kDim, .out = kInner},
      .down = {
          .weight = at::randn({kDim, kInner}) / 1024, .bias = at::randn({kDim}), .in = kInner, .out = kDim}};
  const at::Tensor x = at::randn({2, kTokens / 2, kDim}), gate = at::randn({2, 1, kDim});

  auto through = [&](const at::Tensor& rows) {
    kernels::Workspace workspace;
    at::Tensor y = at::empty_like(rows);
    feed_forward(layer, rows, {.gate = gate, .residual = rows}, workspace, y);
    return y;
  };

  const at::Tensor y = through(x);

  ASSERT_EQ(y.sizes(), x.sizes());
  const at::Tensor alone =
      at::cat({through(x.slice(1, 0, 3)), through(x.slice(1, 3, 14)), through(x.slice(1, 14))}, 1);
  EXPECT_TRUE(at::equal(y, alone));
}

}  // namespace
}  // namespace sluice::nn
