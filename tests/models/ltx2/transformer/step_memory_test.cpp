#include "support/peak_allocator.h"
#include "support/random_transformer.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <gtest/gtest.h>

#include <vector>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kMebibyte = 1 << 20;

class StepMemory : public testing::TestWithParam<at::ScalarType> {
 protected:
  // The largest block that each of two steps allocates, whose passes take every way through a block.
  std::vector<std::int64_t> largest_blocks(const at::Tensor& video_timestep) {
    const Pass pass = transformer.pass(video_timestep, GetParam());
    Pass isolated = pass, perturbed = pass;
    isolated.isolate_modalities = true;
    perturbed.perturbed_blocks = {1};
    kernels::Workspace workspace;
    std::vector<std::int64_t> largest;
    for (int step = 0; step < 2; ++step) {
      const kernels::Workspace::Scope scope(workspace);  // between steps it becomes what the first one needed
      const test::PeakAllocator allocator;
      transformer.model.forward(transformer.source, transformer.positions, {pass, isolated, perturbed},
                                workspace);
      largest.push_back(allocator.largest());
    }
    return largest;
  }

  c10::InferenceMode no_graph;
  test::RandomTransformer transformer;
};

TEST_P(StepMemory, allocates_no_mebibyte_after_the_first_step) {
  const auto largest = largest_blocks(at::full({1}, 500.0F));

  EXPECT_GT(largest[0], kMebibyte);
  EXPECT_LE(largest[1], kMebibyte);
}

TEST_P(StepMemory, allocates_no_mebibyte_where_tokens_have_timesteps_of_their_own) {
  at::Tensor timestep = at::full({1, test::RandomTransformer::kGrid.tokens()}, 500.0F);
  timestep.narrow(1, 0, 256).zero_();

  EXPECT_LE(largest_blocks(timestep)[1], kMebibyte);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, StepMemory, testing::Values(at::kFloat, at::kBFloat16));

}  // namespace
}  // namespace sluice::ltx2
