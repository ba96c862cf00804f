#include "pipeline/decode_phases.h"

#include "kernels/scratch.h"
#include "models/ltx2/video_vae/decode_stream.h"
#include "sampling/finite.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

std::vector<float> channel(const at::Tensor& wave, std::int64_t index) {
  at::Tensor samples = wave.select(0, index).to(at::kFloat).contiguous();
  const float* data = samples.const_data_ptr<float>();
  return {data, data + samples.numel()};
}

}  // namespace

ClipLatents unpack_latents(const ModelSet& models, Backends& backends, const Settings& settings,
                           const Latents& latents) {
  c10::InferenceMode no_graph;
  ClipLatents clip;
  {
    const ltx2::VideoDecoder& decoder = *models.video_decoder;
    auto source = backends.source(models.table(ComponentKind::vae));
    auto lease = source->acquire(decoder.statistics_group());
    clip.video = ltx2::denormalize(decoder.statistics(), decoder.config().scaling_factor,
                                   sampling::unpack_video(latents.video, settings.video));
  }
  const ltx2::AudioDecoder& decoder = *models.audio_decoder;
  auto source = backends.source(models.table(ComponentKind::audio_vae));
  auto lease = source->acquire(decoder.statistics_group());
  clip.audio =
      sampling::unpack_audio(ltx2::denormalize_packed(decoder.statistics(), latents.audio), settings.audio);
  return clip;
}

Waveform decode_sound(const ModelSet& models, Backends& backends, const at::Tensor& audio_latents,
                      at::ScalarType dtype) {
  c10::InferenceMode no_graph;
  auto vae = backends.source(models.table(ComponentKind::audio_vae));
  at::Tensor mel = models.audio_decoder->decode(*vae, audio_latents.to(dtype));
  sampling::check_finite(mel, "the decoded mel spectrogram");
  auto vocoder = backends.source(models.table(ComponentKind::vocoder));
  at::Tensor wave = models.vocoder->run(*vocoder, mel).waveform.select(0, 0);  // [channels, samples]
  sampling::check_finite(wave, "the decoded sound");
  kernels::release_scratch();
  return {.sample_rate = static_cast<int>(models.vocoder->config().output_sampling_rate),
          .left = channel(wave, 0),
          .right = channel(wave, 1)};
}

void decode_frames(const ModelSet& models, Backends& backends, const at::Tensor& video_latents,
                   at::ScalarType dtype, const FrameObserver& observer) {
  c10::InferenceMode no_graph;
  auto source = backends.source(models.table(ComponentKind::vae));
  std::int64_t index = 0;
  ltx2::VideoDecodeStream stream(*models.video_decoder, *source, [&](const at::Tensor& frames) {
    for (std::int64_t i = 0; i < frames.size(2); ++i)
      observer(index++, frames.select(2, i).select(0, 0).to(at::kFloat));
  });
  const std::int64_t count = video_latents.size(2);
  for (std::int64_t f = 0; f < count; ++f) {
    stream.push(video_latents.narrow(2, f, 1).to(dtype), f + 1 == count ? ltx2::Last::yes : ltx2::Last::no);
  }
  kernels::release_scratch();
}

}  // namespace sluice::pipeline
