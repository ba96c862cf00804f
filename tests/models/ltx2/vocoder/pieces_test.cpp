#include "models/ltx2/vocoder/pieces.h"

#include "models/ltx2/vocoder/generator.h"
#include "models/ltx2/vocoder/memory.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"

#include "kernels/scratch.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <vector>

namespace sluice::ltx2 {
namespace {

TEST(SoundPieces, give_what_the_layer_gives_of_the_whole_wave) {
  at::manual_seed(3);
  at::Tensor x = at::randn({2, 3, 101}), weight = at::randn({4, 3, 5});
  std::vector<std::int64_t> lengths;
  auto conv = [&](const at::Tensor& piece) {
    lengths.push_back(piece.size(2));
    return at::conv1d(piece, weight, {}, 1, /*padding=*/6, /*dilation=*/3);
  };

  at::Tensor got = in_pieces(x, {.samples = 20, .reach = 12}, conv);

  EXPECT_EQ(lengths, (std::vector<std::int64_t>{32, 44, 44, 44, 33, 13}));
  EXPECT_LE(test::error_of_max(got, conv(x)), 1e-6);
}

TEST(SoundPieces, follow_a_layer_that_raises_the_rate_and_adds_a_sample_at_the_end) {
  at::manual_seed(4);
  at::Tensor x = at::randn({1, 3, 50}), weight = at::randn({3, 2, 6});
  auto raise = [&](const at::Tensor& piece) {
    return at::conv_transpose1d(piece, weight, {}, /*stride=*/3, /*padding=*/1);
  };

  at::Tensor got = in_pieces(x, {.samples = 7, .reach = 3, .factor = 3}, raise);

  EXPECT_EQ(got.size(2), 151);
  EXPECT_LE(test::error_of_max(got, raise(x)), 1e-6);
}

AntialiasedSnake random_snake(std::int64_t channels) {
  return {.config = {},
          .alpha = at::randn({channels}) * 0.3,
          .beta = at::randn({channels}) * 0.3,
          .upsample_filter = at::randn({1, 1, 12}) * 0.3,
          .downsample_filter = at::randn({1, 1, 12}) * 0.3};
}

TEST(AntialiasedSnake, gives_the_same_in_pieces_as_at_once) {
  at::manual_seed(5);
  const AntialiasedSnake act = random_snake(64);
  const std::int64_t samples = activation_piece(1, 64) * 5 / 2;
  at::Tensor x = at::randn({1, 64, samples});

  at::Tensor got = antialiased_snake(act, x);

  EXPECT_LE(test::error_of_max(got, downsample(act, snake_beta(act, upsample(act, x)))), 1e-6);
}

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

TEST_P(VocoderMemory, covers_the_tensors_and_is_a_small_multiple_of_the_widest) {
  const auto [hidden, frames] = GetParam();
  WideVocoder wide(hidden);
  at::Tensor mel = wide.mel(frames);
  kernels::release_scratch();
  test::PeakAllocator allocator;

  wide.vocoder.run(*wide.source, mel);

  const auto planned = static_cast<double>(vocoder_tensors(wide.vocoder.config(), frames));
  EXPECT_LE(static_cast<double>(allocator.peak()), planned * 1.05);
  EXPECT_GE(static_cast<double>(allocator.peak()), planned * 0.7);  // the rest is the convolution library's
}

INSTANTIATE_TEST_SUITE_P(sizes, VocoderMemory,
                         testing::Values(std::pair{64, 400}, std::pair{64, 2000}, std::pair{256, 600}),
                         [](const auto& info) {
                           return std::to_string(info.param.first) + "_wide_" +
                                  std::to_string(info.param.second) + "_frames";
                         });

}  // namespace
}  // namespace sluice::ltx2
