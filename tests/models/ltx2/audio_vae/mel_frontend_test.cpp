#include "models/ltx2/audio_vae/mel_frontend.h"

#include "models/ltx2/audio_vae/mel_filters.h"
#include "models/ltx2/audio_vae/resampler.h"
#include "support/fixture.h"
#include "support/peak_allocator.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

namespace sluice::ltx2 {
namespace {

using test::Fixture;

class MelFrontendParity : public testing::TestWithParam<std::string> {};

TEST_P(MelFrontendParity, gives_the_references_samples_and_spectrogram) {
  Fixture fixture("mel_frontend/" + GetParam());
  const nlohmann::json& config = fixture.config();
  MelFrontend frontend{.sample_rate = config.at("sample_rate"),
                       .window = config.at("n_fft"),
                       .hop = config.at("hop_length"),
                       .mel_bins = config.at("n_mels"),
                       .lowest = config.at("f_min"),
                       .highest = config.at("f_max")};

  at::Tensor resampled =
      resample_wave(fixture.input("waveform")[0], fixture.params().at("sampling_rate"), frontend.sample_rate);

  EXPECT_TRUE(fixture.matches("resampled", resampled.unsqueeze(0)));
  EXPECT_TRUE(fixture.matches("mel", log_mel(resampled, frontend).unsqueeze(0)));
}

INSTANTIATE_TEST_SUITE_P(cases, MelFrontendParity,
                         testing::Values("stereo", "resample_48000", "resample_44100_mono"),
                         [](const auto& info) { return info.param; });

at::Tensor tone(double hertz, std::int64_t samples, std::int64_t rate, std::int64_t channels = 1) {
  at::Tensor angle =
      at::arange(samples, at::kDouble) * (2 * std::numbers::pi * hertz / static_cast<double>(rate));
  return angle.sin().to(at::kFloat).expand({channels, samples}).contiguous();
}

TEST(MelFrontend, takes_its_numbers_from_the_autoencoders_config) {
  AudioVaeConfig config;
  config.sample_rate = 24000, config.mel_hop_length = 240, config.mel_bins = 80;

  MelFrontend frontend = mel_frontend_of(config);

  EXPECT_EQ(frontend.sample_rate, 24000);
  EXPECT_EQ(frontend.hop, 240);
  EXPECT_EQ(frontend.mel_bins, 80);
  EXPECT_EQ(frontend.window, 1024);
  EXPECT_EQ(frontend.lowest, 0);
  EXPECT_EQ(frontend.highest, 12000);
}

TEST(LogMel, has_a_frame_for_every_hop_and_one_more) {
  for (std::int64_t samples : {513, 640, 799, 800, 4000, 50'000}) {
    at::Tensor mel = log_mel(at::zeros({2, samples}), {});

    EXPECT_EQ(mel.sizes(), at::IntArrayRef({2, 1 + samples / 160, 64})) << samples;
  }
}

TEST(LogMel, of_silence_is_the_logarithm_of_the_floor) {
  at::Tensor mel = log_mel(at::zeros({1, 2000}), {});

  EXPECT_TRUE(at::allclose(mel, at::full_like(mel, std::log(1e-5))));
}

TEST(LogMel, finds_a_pure_tone_in_the_bin_whose_triangle_peaks_nearest) {
  const MelFrontend frontend;
  const double step = to_mel(frontend.highest) / static_cast<double>(frontend.mel_bins + 1);
  for (std::int64_t bin : {10, 30, 45, 60}) {
    at::Tensor mel = log_mel(tone(to_hertz(step * static_cast<double>(bin + 1)), 16000, 16000), frontend);

    EXPECT_TRUE(at::all(mel[0].narrow(0, 5, 90).argmax(1) == bin).item<bool>()) << bin;
  }
}

TEST(LogMel, refuses_fewer_samples_than_its_border_reflects) {
  EXPECT_THAT(
      [] {
        log_mel(at::zeros({1, 512}), {});
      },
      test::ThrowsError(ErrorKind::internal, testing::HasSubstr("more than 512 samples"), testing::_));
}

TEST(MelFilters, have_slaneys_norm_and_lie_side_by_side) {
  const auto filters =
      mel_filters({.sample_rate = 16000, .window = 16384, .bins = 40, .lowest = 0, .highest = 8000});

  ASSERT_EQ(filters.size(), 40u);
  for (std::size_t i = 0; i < filters.size(); ++i) {
    double area = 0;
    for (float weight : filters[i].weights) area += static_cast<double>(weight) * 8000 / 8192;
    EXPECT_NEAR(area, 1, 1e-3) << i;
    EXPECT_GT(filters[i].first, i == 0 ? -1 : filters[i - 1].first);
  }
}

TEST(MelScale, is_linear_below_a_kilohertz_and_goes_back_and_forth) {
  EXPECT_DOUBLE_EQ(to_mel(200), 3);
  EXPECT_DOUBLE_EQ(to_mel(1000), 15);
  EXPECT_DOUBLE_EQ(to_mel(6400), 42);
  for (double hertz : {0.0, 440.0, 999.0, 1001.0, 8000.0}) EXPECT_NEAR(to_hertz(to_mel(hertz)), hertz, 1e-9);
}

TEST(Resampling, rounds_the_number_of_samples_up) {
  for (auto [from, samples, want] : std::vector<std::array<std::int64_t, 3>>{{48000, 6001, 2001},
                                                                             {44100, 5000, 1815},
                                                                             {8000, 100, 200},
                                                                             {192000, 13, 2},
                                                                             {11025, 1, 2},
                                                                             {22050, 441, 320}}) {
    EXPECT_EQ(resample_wave(at::zeros({1, samples}), from, 16000).size(1), want) << from;
  }
}

TEST(Resampling, keeps_a_tone_that_both_rates_can_have) {
  for (std::int64_t from : {8000, 11025, 22050, 44100, 48000, 88200, 96000, 192000}) {
    at::Tensor got = resample_wave(tone(440, from / 2, from), from, 16000).narrow(1, 100, 7000);

    EXPECT_LE((got - tone(440, 8000, 16000).narrow(1, 100, 7000)).abs().max().item<double>(), 2e-3) << from;
  }
}

TEST(Resampling, removes_a_tone_above_half_the_new_rate) {
  at::Tensor got = resample_wave(tone(12000, 48000, 48000), 48000, 16000).narrow(1, 100, 15000);

  EXPECT_LE(got.abs().max().item<double>(), 0.02);
}

TEST(Resampling, in_pieces_equals_the_whole) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 1);
  std::vector<float> wave(3001);
  for (float& sample : wave) sample = values(random);
  for (std::int64_t from : {8000, 44100, 48000, 192000}) {
    const ResampleRatio ratio(from, 16000);
    const Resampler resampler(ratio);
    std::vector<float> whole(static_cast<std::size_t>(ratio.length(3001))), pieces(whole.size());

    resampler.run(wave, 0, whole);
    for (std::size_t first = 0, count; first < pieces.size(); first += count) {
      count = std::min<std::size_t>(1 + random() % 300, pieces.size() - first);
      resampler.run(wave, static_cast<std::int64_t>(first), std::span(pieces).subspan(first, count));
    }

    EXPECT_EQ(pieces, whole) << from;
  }
}

TEST(Resampling, to_the_same_rate_is_nothing) {
  at::Tensor wave = at::randn({2, 100});

  EXPECT_TRUE(resample_wave(wave, 16000, 16000).is_same(wave));
}

struct MemoryCase {
  std::int64_t channels, samples, from;
};

class MelMemory : public testing::TestWithParam<MemoryCase> {};

TEST_P(MelMemory, is_planned_within_ten_percent) {
  const auto [channels, samples, from] = GetParam();
  const MelFrontend frontend;
  at::Tensor wave = at::randn({channels, samples});
  test::PeakAllocator allocator;

  at::Tensor mel = log_mel(resample_wave(wave, from, frontend.sample_rate), frontend);

  const auto planned = static_cast<double>(mel_memory(frontend, channels, samples, from));
  EXPECT_NEAR(static_cast<double>(allocator.peak()) / planned, 1, 0.1) << allocator.peak();
}

INSTANTIATE_TEST_SUITE_P(rates, MelMemory,
                         testing::Values(MemoryCase{2, 16000, 16000}, MemoryCase{2, 20 * 192'000, 192'000},
                                         MemoryCase{1, 44'100, 44'100}, MemoryCase{2, 5 * 96'001, 96'001},
                                         MemoryCase{2, 160'000, 8000}),
                         [](const auto& info) {
                           return std::to_string(info.param.samples) + "_at_" +
                                  std::to_string(info.param.from);
                         });

}  // namespace
}  // namespace sluice::ltx2
