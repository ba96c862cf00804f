#include "pipeline/denoise_memory.h"

#include "support/random_transformer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <gtest/gtest.h>

namespace sluice::pipeline {
namespace {

TEST(DenoiseMemory, is_what_a_step_takes_from_its_workspace) {
  const c10::InferenceMode no_graph;
  test::RandomTransformer transformer;
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const ltx2::Pass pass = transformer.pass(at::full({1}, 500.0F), dtype);
    for (const int passes : {1, 3}) {
      kernels::Workspace workspace;
      {
        const kernels::Workspace::Scope scope(workspace);
        transformer.model.forward(transformer.source, transformer.positions,
                                  std::vector<ltx2::Pass>(static_cast<std::size_t>(passes), pass), workspace);
      }

      const DenoiseMemory planned =
          denoise_memory(transformer.model.config(), {.video_tokens = test::RandomTransformer::kGrid.tokens(),
                                                      .audio_tokens = test::RandomTransformer::kSound,
                                                      .text_tokens = test::RandomTransformer::kText,
                                                      .passes = passes,
                                                      .dtype = dtype,
                                                      .threads = at::get_num_threads()});

      EXPECT_LE(workspace.most_used(), planned.workspace()) << passes << " passes in " << at::toString(dtype);
      EXPECT_GE(workspace.most_used() + MiB(2), planned.workspace())
          << passes << " in " << at::toString(dtype);
    }
  }
}

}  // namespace
}  // namespace sluice::pipeline
