#pragma once
// What a request gives beside its words: pictures, videos, sound, looked at before any work (headers only),
// so that a plan can count with them and everything wrong with them is said at once.

#include "media/picture.h"
#include "media/sound_reader.h"
#include "media/video_reader.h"

#include <sluice/sluice.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct GivenMedia {
  std::vector<media::PictureInfo> images;    // as Request::images
  std::vector<media::ReadableVideo> videos;  // as Request::videos, at the clip's rate
  std::vector<media::ReadableVideo> references;
  std::optional<media::SoundInfo> sound;    // of Request::audio
  std::optional<media::SoundInfo> retaken;  // of the video that is retaken, if it has sound
};

// Error(bad_input) as probe_picture(), probe_video() and probe_sound() have it.
GivenMedia look_at_media(const Request& request);

// Frames of the clip where the request leaves them open: as many as what is retaken has (cut to 8k + 1), as
// the sound lasts (rounded up to 8k + 1), else 121.  `step`: frames a latent.
std::int64_t frames_of(const Request& request, const GivenMedia& media, std::int64_t step);

}  // namespace sluice::pipeline
