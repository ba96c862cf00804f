#pragma once
// The outermost boxes of an mp4 or mov, by their headers alone: whether the file is all there.

#include <filesystem>

namespace sluice::media {

// Error(corrupt_file) where a box ends behind the file, or no box is the index (moov) of the frames.  `path`
// is known to begin as an mp4 does.
void check_mp4_is_whole(const std::filesystem::path& path);

}  // namespace sluice::media
