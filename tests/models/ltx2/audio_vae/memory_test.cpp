#include "models/ltx2/audio_vae/memory.h"

#include "kernels/scratch.h"
#include "models/ltx2/audio_vae/decoder.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

struct MemoryCase {
  std::string name;
  at::ScalarType compute;
  at::ScalarType weights;
  std::int64_t latents;
};

class AudioDecodeMemory : public testing::TestWithParam<MemoryCase> {};

TEST_P(AudioDecodeMemory, is_planned_within_ten_percent) {
  nlohmann::json json = test::Fixture("audio_vae/decode_l6").config();
  json["base_channels"] = 32;
  const AudioDecoder decoder(AudioVaeConfig::parse(json));
  test::TensorMap weights;
  for (const weights::ParameterGroup* group : decoder.groups())
    for (const weights::Parameter& parameter : group->parameters)
      weights[parameter.name] = (at::randn(parameter.shape) * 0.02).to(GetParam().weights);
  test::TensorSource source(weights);
  at::Tensor latents =
      at::randn({1, decoder.config().latent_channels, GetParam().latents, decoder.config().latent_bins()})
          .to(GetParam().compute);
  kernels::release_scratch();
  test::PeakAllocator allocator;

  decoder.decode(source, latents);

  const auto planned = audio_decode_memory(decoder.config(), GetParam().latents, GetParam().compute);
  EXPECT_NEAR(static_cast<double>(allocator.peak()) * 1.08 / static_cast<double>(planned), 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(dtypes, AudioDecodeMemory,
                         testing::Values(MemoryCase{"f32", at::kFloat, at::kFloat, 60},
                                         MemoryCase{"widened", at::kFloat, at::kBFloat16, 100},
                                         MemoryCase{"bf16", at::kBFloat16, at::kBFloat16, 100}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::ltx2
