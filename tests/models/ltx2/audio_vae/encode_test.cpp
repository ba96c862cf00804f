#include "models/ltx2/audio_vae/encoder.h"

#include "support/fixture.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

AudioVaeConfig config_of(const Fixture& fixture) {
  return AudioVaeConfig::parse(fixture.config());
}

class AudioEncodeParity : public testing::TestWithParam<std::string> {};

TEST_P(AudioEncodeParity, gives_the_references_mean_and_packed_latents) {
  Fixture fixture("audio_vae/" + GetParam());
  AudioEncoder encoder(config_of(fixture));
  AudioDecoder decoder(encoder.config());
  auto source =
      test::open_weights(fixture.weights_path(), {&encoder.encoder_group(), &decoder.statistics_group()});

  at::Tensor mean = encoder.encode(*source, fixture.input("mel"), at::kFloat);

  EXPECT_TRUE(fixture.matches("mean", mean));
  auto lease = source->acquire(decoder.statistics_group());
  EXPECT_TRUE(fixture.matches("latents_packed_normalized",
                              normalize_packed(decoder.statistics(), mean.transpose(1, 2).flatten(2))));
}

INSTANTIATE_TEST_SUITE_P(cases, AudioEncodeParity, testing::Values("encode_t16", "encode_t21"),
                         [](const auto& info) { return info.param; });

class AudioEncoderWorld : public testing::Test {
 protected:
  at::Tensor encode(const at::Tensor& mel, at::ScalarType compute = at::kFloat) {
    return encoder_.encode(source_, mel, compute);
  }

  Fixture fixture_{"audio_vae/encode_t21"};
  AudioEncoder encoder_{config_of(fixture_)};
  test::TensorSource source_{test::read_tensors(fixture_.weights_path())};
};

TEST_F(AudioEncoderWorld, halves_time_twice_and_rounds_up) {
  const AudioVaeConfig& config = encoder_.config();
  for (std::int64_t frames : {1, 2, 3, 4, 5, 8, 9, 13}) {
    at::Tensor latents = encode(at::randn({1, config.in_channels, frames, config.mel_bins}));

    const std::int64_t half = (frames + 1) / 2;
    EXPECT_EQ(latents.sizes(),
              at::IntArrayRef({1, config.latent_channels, (half + 1) / 2, config.latent_bins()}))
        << frames;
    EXPECT_EQ(latents.size(2), config.latents(frames));
  }
}

TEST_F(AudioEncoderWorld, is_causal_so_a_longer_sound_starts_the_same) {
  at::Tensor whole = encode(fixture_.input("mel"));

  at::Tensor start = encode(fixture_.input("mel").narrow(2, 0, 9));

  EXPECT_LE(test::error_of_max(start, whole.narrow(2, 0, 3)), 1e-5);
}

TEST_F(AudioEncoderWorld, computes_in_bf16_when_asked_and_gives_f32) {
  at::Tensor narrow = encode(fixture_.input("mel"), at::kBFloat16);

  EXPECT_EQ(narrow.scalar_type(), at::kFloat);
  EXPECT_LE(test::error_of_max(narrow, fixture_.output("mean")), 0.05);
  EXPECT_FALSE(at::equal(narrow, encode(fixture_.input("mel"))));
}

TEST_F(AudioEncoderWorld, refuses_spectrograms_of_other_sizes) {
  const AudioVaeConfig& config = encoder_.config();
  const std::int64_t channels = config.in_channels, bins = config.mel_bins;
  for (const std::vector<std::int64_t>& shape : {std::vector{channels, 8L, bins},
                                                 {1L, channels + 1, 8L, bins},
                                                 {1L, channels, 0L, bins},
                                                 {1L, channels, 8L, bins + 1},
                                                 {2L, channels, 8L, bins}}) {
    EXPECT_THAT([&] { encode(at::zeros(shape)); },
                test::ThrowsError(ErrorKind::internal, testing::HasSubstr("audio encoder"), testing::_));
  }
}

TEST(AudioVaeConfig, refuses_a_posterior_without_variance_and_other_numbers_of_levels) {
  for (auto [key, value] : {std::pair<const char*, nlohmann::json>{"double_z", false},
                            {"ch_mult", {1, 2}},
                            {"ch_mult", {1, 2, 4, 8}}}) {
    nlohmann::json config = Fixture("audio_vae/encode_t21").config();
    config[key] = value;
    EXPECT_THAT([&] { AudioVaeConfig::parse(config); },
                test::ThrowsError(ErrorKind::bad_input, testing::HasSubstr(key), testing::_));
  }
}

}  // namespace
}  // namespace sluice::ltx2
