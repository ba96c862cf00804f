#include "pipeline/decode_phases.h"

#include "kernels/scratch.h"
#include "models/ltx2/audio_vae/memory.h"
#include "models/ltx2/video_vae/decode_clip.h"
#include "models/ltx2/vocoder/memory.h"
#include "sampling/finite.h"
#include "weights/dtype.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <limits>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

std::vector<float> channel(const at::Tensor& wave, std::int64_t index) {
  at::Tensor samples = wave.select(0, index).to(at::kFloat).contiguous();
  const float* data = samples.const_data_ptr<float>();
  return {data, data + samples.numel()};
}

ltx2::DecodeWay way_of(DecodeMode mode) {
  switch (mode) {
    case DecodeMode::automatic:
      return ltx2::DecodeWay::automatic;
    case DecodeMode::stream:
      return ltx2::DecodeWay::stream;
    case DecodeMode::whole:
      return ltx2::DecodeWay::whole;
    case DecodeMode::tiled:
      return ltx2::DecodeWay::tiled;
  }
  throw Error(ErrorKind::internal, "a mode of decoding that does not exist");
}

// Of a decoder's convolutions; where files mix several, of the largest part.
at::ScalarType dtype_of(const weights::ComponentTable& table) {
  std::map<Dtype, Bytes> bytes;
  for (const auto& [name, tensor] : table.tensors)
    if (name.starts_with("decoder.")) bytes[tensor.dtype] += tensor.size;
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? at::kFloat : weights::to_scalar_type(most->first);
}

}  // namespace

ClipLatents unpack_latents(const ModelSet& models, Backends& backends, const Settings& settings,
                           const Latents& latents) {
  c10::InferenceMode no_graph;
  ClipLatents clip;
  if (latents.video.defined()) {
    // Tokens of frames beside the grid are not part of the clip.
    const at::Tensor grid = latents.video.narrow(1, 0, settings.video.tokens());
    const ltx2::VideoDecoder& decoder = *models.video_decoder;
    const weights::ParameterGroup* statistics = &decoder.statistics_group();
    auto source = backends.source(models.table(ComponentKind::vae), {&statistics, 1});
    auto lease = source->acquire(*statistics);
    clip.video = ltx2::denormalize(decoder.statistics(), decoder.config().scaling_factor,
                                   sampling::unpack_video(grid, settings.video));
  }
  if (!latents.audio.defined()) return clip;
  const ltx2::AudioDecoder& decoder = *models.audio_decoder;
  const weights::ParameterGroup* statistics = &decoder.statistics_group();
  auto source = backends.source(models.table(ComponentKind::audio_vae), {&statistics, 1});
  auto lease = source->acquire(*statistics);
  clip.audio =
      sampling::unpack_audio(ltx2::denormalize_packed(decoder.statistics(), latents.audio), settings.audio);
  return clip;
}

Bytes sound_decode_memory(const ModelSet& models, std::int64_t latents, at::ScalarType dtype) {
  const ltx2::AudioVaeConfig& config = models.audio_decoder->config();
  const std::int64_t mel = ltx2::audio_decode_memory(config, latents, dtype);
  return static_cast<Bytes>(
      std::max(mel, ltx2::vocoder_memory(models.vocoder->config(), config.mel_frames(latents))));
}

Waveform decode_sound(const ModelSet& models, Backends& backends, const at::Tensor& audio_latents,
                      at::ScalarType dtype) {
  c10::InferenceMode no_graph;
  const auto decoder_order = models.audio_decoder->groups();
  auto vae = backends.source(models.table(ComponentKind::audio_vae), decoder_order);
  at::Tensor mel = models.audio_decoder->decode(*vae, audio_latents.to(dtype));
  sampling::check_finite(mel, "the decoded mel spectrogram");
  const auto vocoder_order = models.vocoder->groups();
  auto vocoder = backends.source(models.table(ComponentKind::vocoder), vocoder_order);
  at::Tensor wave = models.vocoder->run(*vocoder, mel).waveform.select(0, 0);  // [channels, samples]
  sampling::check_finite(wave, "the decoded sound");
  kernels::release_scratch();
  return {.sample_rate = static_cast<int>(models.vocoder->config().output_sampling_rate),
          .left = channel(wave, 0),
          .right = channel(wave, 1)};
}

ltx2::DecodePlan plan_frames(const ModelSet& models, const sampling::VideoLatentShape& clip,
                             at::ScalarType dtype, DecodeMode mode, Bytes budget) {
  constexpr Bytes kMost = std::numeric_limits<std::int64_t>::max();
  return ltx2::plan_decode(models.video_decoder->config(),
                           {.frames = clip.frames, .height = clip.height, .width = clip.width},
                           {.compute = dtype, .weights = dtype_of(models.table(ComponentKind::vae))},
                           way_of(mode), static_cast<std::int64_t>(std::min(budget, kMost)));
}

void decode_frames(const ModelSet& models, Backends& backends, const at::Tensor& video_latents,
                   const ltx2::DecodePlan& plan, const std::filesystem::path& folder,
                   const FrameObserver& observer) {
  c10::InferenceMode no_graph;
  const weights::ParameterGroup* decoder = &models.video_decoder->decoder_group();
  auto source = backends.source(models.table(ComponentKind::vae), {&decoder, 1});
  std::int64_t index = 0;
  const auto hand_on = [&](const at::Tensor& frames) {
    for (std::int64_t i = 0; i < frames.size(2); ++i)
      observer(index++, frames.select(2, i).select(0, 0).to(at::kFloat));
  };
  ltx2::decode_clip(*models.video_decoder, *source, video_latents, plan, hand_on, folder);
  kernels::release_scratch();
}

}  // namespace sluice::pipeline
