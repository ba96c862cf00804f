#pragma once
// The phase that turns what is given into latents: frames are read, brought to a stage's size and encoded as
// they come; sound is read, resampled, and encoded as a log-mel spectrogram.

#include "media/picture_fit.h"
#include "pipeline/backends.h"
#include "pipeline/condition_plan.h"
#include "pipeline/model_set.h"
#include "pipeline/settings.h"

#include <sluice/sluice.h>

#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

namespace sluice::pipeline {

// What a request means where it says nothing, and as media has it.
int image_crf(const Request& request);
media::Fit media_fit(Fit fit);

// done of total frames; may throw to stop.
using FrameProgress = std::function<void(std::int64_t done, std::int64_t total)>;

// Latents of each of the plan's frames for a stage: normalized, f32, [1, channels, f, h, w].
std::vector<at::Tensor> encode_frames(const ModelSet& models, Backends& backends, const Request& request,
                                      const Settings& settings, const StageSettings& stage,
                                      const FrameProgress& progress);

// Of the sound that the model hears, or of the clip that is retaken: packed, normalized, f32, [1, latents,
// channels], as many as the clip has; what is missing behind its end is silence.
at::Tensor encode_sound(const ModelSet& models, Backends& backends, const Request& request,
                        const Settings& settings);

// Decodes all that will be encoded and lets go of it, so that damage is told before hours of work are lost to
// it.  Errors of the readers.
void check_media(const Request& request, const ConditionPlan& plan);

// What they need at most beside the weights in their files.
Bytes frames_encode_memory(const ModelSet& models, const Request& request, const Settings& settings,
                           const StageSettings& stage, const GivenMedia& media);
Bytes sound_encode_memory(const ModelSet& models, const Request& request, const Settings& settings,
                          const GivenMedia& media);

}  // namespace sluice::pipeline
