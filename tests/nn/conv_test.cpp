#include "nn/conv.h"

#include <gmock/gmock.h>

namespace sluice::nn {
namespace {

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

}  // namespace
}  // namespace sluice::nn
