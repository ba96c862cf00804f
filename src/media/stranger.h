#pragma once
// A media file that is something else: what a half download leaves, or a name that lies.

#include <filesystem>
#include <string>
#include <string_view>

namespace sluice::media {

struct Wanted {
  std::string_view what;    // "a picture"
  std::string_view remedy;  // "give the picture itself: a PNG or JPEG file"
};

// Error(bad_input) "<path>: is <what it is>, not <what was wanted>" for an empty file, a web page, a Git LFS
// pointer and the like; also where it cannot be opened.  Videos pass, and whatever is not known.
void refuse_stranger(const std::filesystem::path& path, const Wanted& wanted);

}  // namespace sluice::media
