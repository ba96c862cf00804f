#pragma once
// Where what is given goes in a clip: which frames of which file at which place, how many tokens that makes,
// and what of a clip is made anew.  Numbers only, decided from what look_at_media() found.

#include "pipeline/given_media.h"
#include "sampling/latents.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

enum class FrameSource { image, video, reference };

struct PlannedFrames {
  FrameSource source = FrameSource::image;
  std::filesystem::path file;
  std::int64_t frame = 0;  // of the clip, where the first one belongs
  std::int64_t first = 0;  // of the file's frames at the clip's rate
  std::int64_t count = 1;  // that are taken: 8k + 1
  double strength = 1.0;
  std::int64_t downscale = 1;  // of references: how much smaller than the clip

  // Tokens of their own behind the clip's; else they take the place of the clip's first ones.
  bool beside() const { return source == FrameSource::reference || frame > 0; }
};

struct Range {  // [begin, end)
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct ConditionPlan {
  std::vector<PlannedFrames>
      frames;          // in the order of their tokens: those of the clip's grid and keyframes first
  bool sound = false;  // Request::audio is heard
  // What is made anew, in latents; everything else is as in the file.
  std::optional<Range> retaken_video;
  std::optional<Range> retaken_audio;  // empty: the video has no sound, all of it is made

  bool any_frames() const { return !frames.empty(); }
  bool encodes_sound() const { return sound || retaken_audio.has_value(); }
  // Tokens beside the clip's grid in a stage of this shape.
  std::int64_t tokens_beside(const sampling::VideoLatentShape& stage,
                             const sampling::VideoCompression& compression) const;
};

sampling::VideoLatentShape latents_of(const PlannedFrames& frames, const sampling::VideoLatentShape& stage,
                                      const sampling::VideoCompression& compression);

struct ConditionLimits {
  sampling::VideoCompression compression;
  sampling::AudioRate audio_rate;
  std::int64_t audio_length = 0;         // latents of the clip
  std::int64_t reference_downscale = 1;  // of the adapter that takes references
};

// `request.frames` is settled.  Error(usage) names flag, value and what is possible: a frame that the clip
// has not, a strength outside 0 … 1, a start behind a video's end, combinations that contradict each other;
// warnings tell of what is cut or ignored, with both numbers.
ConditionPlan plan_conditions(const Request& request, const GivenMedia& media, const ConditionLimits& limits,
                              std::vector<std::string>& warnings);

}  // namespace sluice::pipeline
