#pragma once
// From clean latents to sound and frames.  Frames are handed on as the decoder makes them.

#include "media/stereo_wave.h"
#include "models/ltx2/video_vae/decode_plan.h"
#include "pipeline/backends.h"
#include "pipeline/denoise.h"
#include "pipeline/model_set.h"
#include "pipeline/settings.h"

#include <sluice/sluice.h>

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <functional>
#include <vector>

namespace sluice::pipeline {

struct ClipLatents {  // as the autoencoders take them: unpacked, denormalized, f32
  at::Tensor video;   // [1, C, F, H, W]
  at::Tensor audio;   // [1, C, L, M]
};

ClipLatents unpack_latents(const ModelSet& models, Backends& backends, const Settings& settings,
                           const Latents& latents);

struct Waveform {
  int sample_rate = 0;
  std::vector<float> left, right;
  media::Pcm pcm = media::Pcm::reference;  // how 16-bit samples are made of it

  media::StereoWave wave() const { return {sample_rate, left, right, pcm}; }
};

// Bytes that decode_sound() needs at most beside the weights in their files, for so many audio latents.
Bytes sound_decode_memory(const ModelSet& models, std::int64_t latents, at::ScalarType dtype);

Waveform decode_sound(const ModelSet& models, Backends& backends, const at::Tensor& audio_latents,
                      at::ScalarType dtype);

// `frame`: f32 [3, height, width], about [-1, 1]; may throw to stop.
using FrameObserver = std::function<void(std::int64_t index, const at::Tensor& frame)>;

// How the frames of a clip are decoded within `budget` bytes, from shapes alone: what the plan of a run
// counts (see ltx2::DecodePlan::memory) is what decode_frames() is given.  Error(does_not_fit).
ltx2::DecodePlan plan_frames(const ModelSet& models, const sampling::VideoLatentShape& clip,
                             at::ScalarType dtype, DecodeMode mode, Bytes budget);

// `folder`: where frames of tiles wait in a file without a name, if the plan says so.
void decode_frames(const ModelSet& models, Backends& backends, const at::Tensor& video_latents,
                   const ltx2::DecodePlan& plan, const std::filesystem::path& folder,
                   const FrameObserver& observer);

}  // namespace sluice::pipeline
