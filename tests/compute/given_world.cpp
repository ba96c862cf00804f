#include "compute/given_world.h"

#include "media/sound_files.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <random>
#include <stdexcept>

namespace sluice::test {

using nlohmann::json;

Arguments given_clip(const Arguments& more) {
  return with(with(demo_clip(), {"--compute-dtype", "f32"}), more);
}

Arguments short_clip(const Arguments& more) {
  return given_clip(with({"--sigmas", "1,0.5"}, more));
}

const fs::path& earlier_clip() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    const Outcome outcome =
        run(given_clip({"--prompt", kOtherPrompt, "-o", folder / "clip.mp4", "--wav", folder / "clip.wav",
                        "--frames-dir", folder / "frames", "--latents", folder / "latents"}));
    if (outcome.code != 0) throw std::runtime_error(outcome.err);
    return true;
  }();
  static_cast<void>(made);
  return folder.path();
}

Samples read_samples(const fs::path& wav) {
  constexpr std::size_t kHeader = 44;
  const std::string content = file_content(wav);
  auto number = [&](std::size_t at, int bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= std::uint32_t{static_cast<std::uint8_t>(content.at(at + i))} << 8 * i;
    return static_cast<int>(value);
  };
  if (content.size() < kHeader || content.compare(36, 4, "data") != 0 || number(34, 2) != 16)
    throw std::runtime_error(wav.string() + " is no plain WAV of 16 bits");
  Samples samples{.sample_rate = number(24, 4), .channels = number(22, 2)};
  samples.values.resize((content.size() - kHeader) / sizeof(std::int16_t));
  std::memcpy(samples.values.data(), content.data() + kHeader, samples.values.size() * sizeof(std::int16_t));
  return samples;
}

Samples tones(int sample_rate, double seconds, unsigned seed) {
  std::mt19937 random(seed);
  Samples samples{.sample_rate = sample_rate, .channels = 2};
  const auto count = static_cast<int>(std::lrint(seconds * sample_rate));
  for (int i = 0; i < count; ++i) {
    const double at = static_cast<double>(i) / sample_rate;
    const double noise = static_cast<double>(random() % 2001) - 1000;
    samples.values.push_back(static_cast<std::int16_t>(12000 * std::sin(2 * M_PI * 400 * at) + noise));
    samples.values.push_back(static_cast<std::int16_t>(9000 * std::sin(2 * M_PI * 90 * at) - noise));
  }
  return samples;
}

void write_samples(const fs::path& wav, const Samples& samples) {
  const std::vector<std::int64_t> values(samples.values.begin(), samples.values.end());
  media::write_bytes(wav, media::WavFile{.sample_rate = samples.sample_rate,
                                         .channels = samples.channels,
                                         .samples = media::stored_samples(values, 16)}
                              .bytes());
}

fs::path write_upsampler(const fs::path& file, const Arguments& more) {
  const Outcome outcome = run({.arguments = with({"--upsampler", file, "--upsampler-channels", "64"}, more),
                               .program = SLUICE_BINARY_DIR "/sluice-synth"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return file;
}

json read_json(const fs::path& file) {
  return json::parse(file_content(file));
}

std::vector<std::string> phase_names(const json& report) {
  std::vector<std::string> names;
  for (const json& phase : report.at("phases")) names.push_back(phase.at("name"));
  return names;
}

Values frame_of(const Values& latents, const LatentShape& shape, std::size_t frame) {
  EXPECT_EQ(latents.size(), shape.channels * shape.frames * shape.inner);
  Values values;
  for (std::size_t channel = 0; channel < shape.channels; ++channel) {
    const auto begin =
        latents.begin() + static_cast<std::ptrdiff_t>((channel * shape.frames + frame) * shape.inner);
    values.insert(values.end(), begin, begin + static_cast<std::ptrdiff_t>(shape.inner));
  }
  return values;
}

}  // namespace sluice::test
