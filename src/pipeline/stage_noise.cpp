#include "pipeline/stage_noise.h"

#include "sampling/latents.h"

#include <ATen/ATen.h>

namespace sluice::pipeline {
namespace {

constexpr std::uint64_t kStepSeedOffset = 10000, kMiddleSeedOffset = 20000;

Latents packed(sampling::NoiseSource& source, const Settings& settings, const StageSettings& stage,
               ltx2::Modalities modalities) {
  Latents noise;
  if (has_video(modalities)) noise.video = source.draw({1, stage.tokens(), stage.video.channels});
  if (has_audio(modalities)) {
    const auto& audio = settings.audio;
    noise.audio = source.draw({1, audio.length, audio.channels * audio.mel_bins});
  }
  return noise;
}

Latents unpacked(sampling::NoiseSource& source, const Settings& settings, const StageSettings& stage,
                 ltx2::Modalities modalities) {
  Latents noise;
  if (has_video(modalities)) {
    const auto& [channels, frames, height, width] = stage.video;
    noise.video = sampling::pack_video(source.draw({1, channels, frames, height, width}));
  }
  if (has_audio(modalities)) {
    const auto& audio = settings.audio;
    noise.audio = sampling::pack_audio(source.draw({1, audio.channels, audio.length, audio.mel_bins}));
  }
  return noise;
}

}  // namespace

Latents stage_noise(const Settings& settings, ltx2::Modalities modalities, std::uint64_t seed,
                    std::size_t stage) {
  sampling::NoiseSource source(seed);
  const StageSettings& first = settings.stages.front();
  Latents noise = first.tokens_beside > 0 ? packed(source, settings, first, modalities)
                                          : unpacked(source, settings, first, modalities);
  for (std::size_t i = 1; i <= stage; ++i) noise = packed(source, settings, settings.stages[i], modalities);
  return noise;
}

StepNoise::StepNoise(std::uint64_t seed, NoiseUse use, const Latents& shapes)
    : source_(seed + (use == NoiseUse::step ? kStepSeedOffset : kMiddleSeedOffset)) {
  if (shapes.video.defined()) video_ = shapes.video.sizes().vec();
  if (shapes.audio.defined()) audio_ = shapes.audio.sizes().vec();
}

Latents StepNoise::draw() {
  Latents noise;
  if (!video_.empty()) noise.video = source_.draw(video_);
  if (!audio_.empty()) noise.audio = source_.draw(audio_);
  return noise;
}

void StepNoise::skip(std::int64_t draws) {
  for (std::int64_t i = 0; i < draws; ++i) draw();
}

}  // namespace sluice::pipeline
