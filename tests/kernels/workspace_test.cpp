#include "kernels/workspace.h"

#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::kernels {
namespace {

TEST(Workspace, uses_the_memory_of_a_scope_again) {
  Workspace workspace;
  void* first = nullptr;
  {
    Workspace::Scope scope(workspace);
    first = workspace.take({100}, at::kFloat).data_ptr();
  }
  Workspace::Scope scope(workspace);

  EXPECT_EQ(workspace.take({50, 3}, at::kBFloat16).data_ptr(), first);
}

TEST(Workspace, gives_tensors_that_live_at_once_their_own_aligned_memory) {
  Workspace workspace;
  Workspace::Scope scope(workspace);
  at::Tensor a = workspace.take({7}, at::kFloat);
  at::Tensor b = workspace.take({3, 1000}, at::kFloat);

  a.fill_(1);
  b.fill_(2);

  EXPECT_TRUE(a.eq(1).all().item<bool>());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b.data_ptr()) % 64, 0U);
}

TEST(Workspace, keeps_what_an_outer_scope_took_when_an_inner_one_ends) {
  Workspace workspace;
  Workspace::Scope outer(workspace);
  at::Tensor kept = workspace.take({1000}, at::kFloat);
  kept.fill_(5);
  for (int i = 0; i < 3; ++i) {
    Workspace::Scope inner(workspace);
    workspace.take({2'000'000}, at::kFloat).fill_(i);
  }

  EXPECT_TRUE(kept.eq(5).all().item<bool>());
}

TEST(Workspace, has_from_the_second_step_on_exactly_what_a_step_uses_at_once) {
  Workspace workspace;
  auto step = [&] {
    Workspace::Scope scope(workspace);
    for (int i = 0; i < 2; ++i) {
      Workspace::Scope layer(workspace);
      workspace.take({1 << 20}, at::kFloat);
      workspace.take({1 << 19}, at::kFloat);
    }
    workspace.take({1 << 18}, at::kFloat);
  };

  step();
  step();

  EXPECT_EQ(workspace.size(), MiB(6));
  EXPECT_EQ(workspace.most_used(), MiB(6));
}

TEST(Workspace, refuses_a_tensor_outside_of_a_scope) {
  Workspace workspace;

  EXPECT_THAT([&] { workspace.take({1}, at::kFloat); },
              test::ThrowsError(ErrorKind::internal, ::testing::HasSubstr("outside of any scope")));
}

TEST(Workspace, that_was_reserved_takes_no_more_within_that) {
  Workspace workspace;
  workspace.reserve(MiB(3));
  const Workspace::Scope scope(workspace);

  workspace.take({1 << 20}, at::kByte);
  workspace.take({2 << 20}, at::kByte);

  EXPECT_EQ(workspace.size(), MiB(3));
}

}  // namespace
}  // namespace sluice::kernels
