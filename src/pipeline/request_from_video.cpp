#include "media/probe.h"
#include "pipeline/account.h"

#include <sluice/sluice.h>

namespace sluice {

Request request_from_video(const std::filesystem::path& video) {
  return pipeline::request_from_tags(media::read_metadata(video), video.string());
}

std::vector<GivenAgain> files_of_video(const std::filesystem::path& video) {
  return pipeline::files_from_tags(media::read_metadata(video), video.string());
}

}  // namespace sluice
