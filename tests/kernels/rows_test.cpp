#include "kernels/rows.h"

#include <ATen/ATen.h>

#include <gtest/gtest.h>

namespace sluice::kernels {
namespace {

TEST(Rows, are_found_in_tensors_whose_rows_are_equally_far_apart) {
  const at::Tensor x = at::empty({3, 4, 10});

  EXPECT_TRUE(has_rows(x));
  EXPECT_EQ(row_stride(x), 10);
  EXPECT_TRUE(has_rows(x.narrow(2, 1, 5)));
  EXPECT_EQ(row_stride(x.narrow(2, 1, 5)), 10);
  EXPECT_TRUE(has_rows(x.narrow(1, 0, 1)));  // every fourth row
  EXPECT_EQ(row_stride(x.narrow(1, 0, 1)), 40);
  EXPECT_TRUE(has_rows(x.select(0, 0).select(0, 0)));
  EXPECT_FALSE(has_rows(x.narrow(1, 0, 2)));
  EXPECT_FALSE(has_rows(x.transpose(0, 1)));
  EXPECT_FALSE(has_rows(x.transpose(1, 2)));
  EXPECT_FALSE(has_rows(at::scalar_tensor(1)));
}

TEST(Rows, are_taken_apart_where_they_would_share_a_set_of_the_cache) {
  Workspace workspace;
  const Workspace::Scope scope(workspace);

  const at::Tensor together = take_rows(workspace, {2, 3, 1000}, at::kFloat),
                   apart = take_rows(workspace, {2, 3, 1024}, at::kFloat);

  EXPECT_EQ(row_stride(together), 1000);
  EXPECT_EQ(row_stride(apart), 1024 + 64);
  EXPECT_EQ(apart.sizes(), (std::vector<std::int64_t>{2, 3, 1024}));
  EXPECT_TRUE(has_rows(apart));
}

}  // namespace
}  // namespace sluice::kernels
