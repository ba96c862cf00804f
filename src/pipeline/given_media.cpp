#include "pipeline/given_media.h"

#include <algorithm>
#include <cmath>

namespace sluice::pipeline {
namespace {

constexpr std::int64_t kFrames = 121;

}  // namespace

GivenMedia look_at_media(const Request& request) {
  GivenMedia media;
  for (const FrameCondition& image : request.images) media.images.push_back(media::probe_picture(image.file));
  for (const FrameCondition& video : request.videos)
    media.videos.push_back(media::probe_video(video.file, request.fps));
  for (const ReferenceClip& reference : request.references)
    media.references.push_back(media::probe_video(reference.file, request.fps));
  if (!request.audio.empty()) media.sound = media::probe_sound(request.audio);
  if (request.retake && request.videos.size() == 1 && media.videos.front().has_sound)
    media.retaken = media::probe_sound(request.videos.front().file);
  return media;
}

std::int64_t frames_of(const Request& request, const GivenMedia& media, std::int64_t step) {
  if (request.frames != 0) return request.frames;
  if (request.retake && !media.videos.empty())
    return std::max<std::int64_t>(media.videos.front().frames - 1, 0) / step * step + 1;
  if (!media.sound) return kFrames;
  // A hundredth of a frame too much is no frame.
  const auto lasts =
      static_cast<std::int64_t>(std::ceil(media.sound->seconds() * request.fps.value() - 0.01));
  return (std::max<std::int64_t>(lasts - 1, 0) + step - 1) / step * step + 1;
}

}  // namespace sluice::pipeline
