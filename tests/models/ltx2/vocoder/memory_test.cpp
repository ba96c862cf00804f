#include "models/ltx2/vocoder/memory.h"

#include "models/ltx2/vocoder/vocoder.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include "kernels/scratch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <utility>

namespace sluice::ltx2 {
namespace {

// A vocoder of a fixture with wider generators and random weights.
class WideVocoder {
 public:
  explicit WideVocoder(std::int64_t hidden) : vocoder(config(hidden)) {
    at::manual_seed(6);
    test::TensorMap weights;
    for (const weights::ParameterGroup* group : vocoder.groups())
      for (const weights::Parameter& parameter : group->parameters)
        weights[parameter.name] = at::randn(parameter.shape) * 0.02;
    source = std::make_unique<test::TensorSource>(std::move(weights));
  }

  static VocoderConfig config(std::int64_t hidden) {
    nlohmann::json json = test::Fixture("vocoder/bwe").config();
    json["hidden_channels"] = hidden;
    json["bwe_hidden_channels"] = hidden;
    return VocoderConfig::parse(json);
  }

  at::Tensor mel(std::int64_t frames) const {
    return at::randn({1, vocoder.config().vocoder.out_channels, frames, vocoder.config().vocoder.mel_bins()});
  }

  Vocoder vocoder;
  std::unique_ptr<test::TensorSource> source;
};

class VocoderMemory : public testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};

TEST_P(VocoderMemory, is_what_a_run_needs) {
  const auto [hidden, frames] = GetParam();
  WideVocoder wide(hidden);
  at::Tensor mel = wide.mel(frames);
  kernels::release_scratch();
  test::PeakAllocator allocator;

  wide.vocoder.run(*wide.source, mel);

  const auto planned = static_cast<double>(vocoder_tensors(wide.vocoder.config(), frames));
  EXPECT_LE(static_cast<double>(allocator.peak()), planned * 1.05);
  EXPECT_GE(static_cast<double>(allocator.peak()), planned * 0.9);
}

INSTANTIATE_TEST_SUITE_P(sizes, VocoderMemory,
                         testing::Values(std::pair{64, 400}, std::pair{64, 2000}, std::pair{256, 600}),
                         [](const auto& info) {
                           return std::to_string(info.param.first) + "_wide_" +
                                  std::to_string(info.param.second) + "_frames";
                         });

}  // namespace
}  // namespace sluice::ltx2
