#pragma once
// Whether a file of sound lost its end.  libav reads WAV and Ogg up to what is there and says nothing.

#include <filesystem>

namespace sluice::media {

// A WAV file that is shorter than its header says, unless it says a size that stands for "written while it
// was made"; an Ogg file whose last page is not whole, or damaged.  False for files of other formats.
// Error(io).
bool lost_its_end(const std::filesystem::path& path);

}  // namespace sluice::media
