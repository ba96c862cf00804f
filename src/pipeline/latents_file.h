#pragma once
// Latents on disk: "video_latents" [1, C, F, H, W] and "audio_latents" [1, C, L, M], f32, denormalized, as
// the reference's pipelines return them.

#include "pipeline/decode_phases.h"
#include "pipeline/settings.h"

#include <filesystem>

namespace sluice::pipeline {

struct StepsDone {
  std::int64_t done = 0;
  std::int64_t of = 0;
};

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps);

// Error(bad_input) with both shapes if they are not those of the request; a warning if they were not denoised
// to the end.
ClipLatents read_latents(const std::filesystem::path& path, const Settings& settings);

}  // namespace sluice::pipeline
