#include "models/ltx2/audio_vae/memory.h"

#include "kernels/scratch.h"
#include "models/ltx2/audio_vae/decoder.h"
#include "models/ltx2/audio_vae/encoder.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <vector>

namespace sluice::ltx2 {
namespace {

struct MemoryCase {
  std::string name;
  at::ScalarType compute;
  at::ScalarType weights;
  std::int64_t length;  // latents to decode, or mel frames to encode
};

AudioVaeConfig wide_config() {
  nlohmann::json json = test::Fixture("audio_vae/decode_l6").config();
  json["base_channels"] = 32;
  return AudioVaeConfig::parse(json);
}

test::TensorSource random_weights(const std::vector<const weights::ParameterGroup*>& groups,
                                  at::ScalarType dtype) {
  test::TensorMap weights;
  for (const weights::ParameterGroup* group : groups)
    for (const weights::Parameter& parameter : group->parameters)
      weights[parameter.name] = (at::randn(parameter.shape) * 0.02).to(dtype);
  return test::TensorSource(weights);
}

// The pool's gaps are planned with what tensors take.
constexpr double kGaps = 1.08;

class AudioDecodeMemory : public testing::TestWithParam<MemoryCase> {};

TEST_P(AudioDecodeMemory, is_planned_within_ten_percent) {
  const AudioDecoder decoder(wide_config());
  test::TensorSource source = random_weights(decoder.groups(), GetParam().weights);
  at::Tensor latents =
      at::randn({1, decoder.config().latent_channels, GetParam().length, decoder.config().latent_bins()})
          .to(GetParam().compute);
  kernels::release_scratch();
  test::PeakAllocator allocator;

  decoder.decode(source, latents);

  const auto planned = audio_decode_memory(decoder.config(), GetParam().length, GetParam().compute);
  EXPECT_NEAR(static_cast<double>(allocator.peak()) * kGaps / static_cast<double>(planned), 1, 0.1);
}

class AudioEncodeMemory : public testing::TestWithParam<MemoryCase> {};

TEST_P(AudioEncodeMemory, is_planned_within_ten_percent) {
  const AudioEncoder encoder(wide_config());
  const AudioVaeConfig& config = encoder.config();
  test::TensorSource source = random_weights(encoder.groups(), GetParam().weights);
  at::Tensor mel = at::randn({1, config.in_channels, GetParam().length, config.mel_bins});
  kernels::release_scratch();
  test::PeakAllocator allocator;

  encoder.encode(source, mel, GetParam().compute);

  const auto planned =
      static_cast<double>(sound_encode_memory(config, GetParam().length, GetParam().compute));
  EXPECT_NEAR(static_cast<double>(allocator.peak()) * kGaps / planned, 1, 0.1);
}

INSTANTIATE_TEST_SUITE_P(dtypes, AudioEncodeMemory,
                         testing::Values(MemoryCase{"f32", at::kFloat, at::kFloat, 240},
                                         MemoryCase{"widened", at::kFloat, at::kBFloat16, 401},
                                         MemoryCase{"bf16", at::kBFloat16, at::kBFloat16, 400}),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(dtypes, AudioDecodeMemory,
                         testing::Values(MemoryCase{"f32", at::kFloat, at::kFloat, 60},
                                         MemoryCase{"widened", at::kFloat, at::kBFloat16, 100},
                                         MemoryCase{"bf16", at::kBFloat16, at::kBFloat16, 100}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::ltx2
