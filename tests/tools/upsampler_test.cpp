#include "synth/upsampler.h"

#include "models/ltx2/upsampler/upsampler.h"
#include "support/temporary_folder.h"
#include "synth/write.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace sluice::synth {
namespace {

ltx2::UpsamplerFile written(const std::filesystem::path& path, const UpsamplerSizes& sizes) {
  const Plan plan = plan_upsampler(path, sizes, {});
  check_plan(plan, Existing::refuse);
  write_plan(plan, /*seed=*/0);
  return ltx2::open_upsampler(path);
}

TEST(SynthUpsampler, is_a_file_that_the_program_opens_and_runs) {
  test::TemporaryFolder folder;
  const ltx2::UpsamplerFile file = written(folder / "up.safetensors", upsampler_sizes(64));
  const auto source = weights::make_weight_source(
      file.table, std::make_shared<bytes::MappedCheckpoint>(file.table.checkpoint));
  at::manual_seed(1);

  const at::Tensor y = file.model->forward(*source, at::randn({1, 64, 2, 2, 3}), at::kFloat);

  EXPECT_EQ(file.version, "2.3.0");
  EXPECT_EQ(y.sizes(), (at::IntArrayRef{1, 64, 2, 4, 6}));
  EXPECT_TRUE(y.isfinite().all().item<bool>());
  EXPECT_GT(y.std().item<double>(), 0.1);  // of the size of latents
  EXPECT_LT(y.std().item<double>(), 10);
}

TEST(SynthUpsampler, doubles_time_too_where_it_is_asked_for) {
  test::TemporaryFolder folder;
  UpsamplerSizes sizes = upsampler_sizes(8);
  sizes.temporal = true;

  const ltx2::UpsamplerFile file = written(folder / "up.safetensors", sizes);

  EXPECT_EQ(file.model->upsampled({5, 2, 3}), (ltx2::LatentSize{9, 4, 6}));
}

TEST(SynthUpsampler, of_the_published_latents_has_the_published_tensors) {
  const Plan plan = plan_upsampler("up.safetensors", upsampler_sizes(128), {});

  EXPECT_EQ(plan.tensors(), 72U);
  EXPECT_NEAR(static_cast<double>(plan.data_size()) / 2, 497.9e6, 0.1e6);
}

}  // namespace
}  // namespace sluice::synth
