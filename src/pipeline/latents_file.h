#pragma once
// Latents on disk: "video_latents" and "audio_latents", f32.  Clean ones are [1, C, F, H, W] and [1, C, L,
// M], denormalized, as the reference's pipelines return them; those of a step are packed and normalized, [1,
// tokens, C] and [1, L, C · M].

#include "pipeline/decode_phases.h"
#include "pipeline/kept_tensors.h"
#include "pipeline/settings.h"

#include <filesystem>
#include <variant>

namespace sluice::pipeline {

struct StepsDone {
  std::int64_t done = 0;
  std::int64_t of = 0;
};

KeptTensors latents_content(const ClipLatents& latents, StepsDone steps);
KeptTensors latents_content(const Latents& latents, StepsDone steps);

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps);

// Error(bad_input) with the shapes if they are not those of the request; a warning if they were not denoised
// to the end.
std::variant<ClipLatents, Latents> read_latents(const std::filesystem::path& path, const Settings& settings);

}  // namespace sluice::pipeline
