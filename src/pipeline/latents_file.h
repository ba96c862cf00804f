#pragma once
// Latents on disk: "video_latents" and "audio_latents", f32.  Clean ones are [1, C, F, H, W] and [1, C, L,
// M], denormalized, as the reference's pipelines return them; those of a step are packed and normalized, [1,
// tokens, C] and [1, L, C · M].  A stream that was left out is not there.  Of several clips those after the
// first have ".1", ".2", … behind their names.

#include "pipeline/decode_phases.h"
#include "pipeline/kept_tensors.h"
#include "pipeline/settings.h"

#include <filesystem>
#include <variant>
#include <vector>

namespace sluice::pipeline {

struct StepsDone {
  std::int64_t done = 0;
  std::int64_t of = 0;
};

KeptTensors latents_content(const std::vector<ClipLatents>& clips, StepsDone steps);
KeptTensors latents_content(const std::vector<Latents>& clips, StepsDone steps);

// What latents_content() made, of so many clips.
std::vector<ClipLatents> clips_in(const KeptTensors& kept, std::size_t count);
std::vector<Latents> packed_clips_in(const KeptTensors& kept, std::size_t count);

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps);

// Error(bad_input) with the shapes if they are not those of the request; a warning if they were not denoised
// to the end.
std::variant<ClipLatents, Latents> read_latents(const std::filesystem::path& path, const Settings& settings);

}  // namespace sluice::pipeline
