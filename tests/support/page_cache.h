#pragma once
// Files that are not in memory when a test begins.  The temporary folder must be on a disk.

#include <fcntl.h>
#include <unistd.h>
#include <filesystem>
#include <stdexcept>

namespace sluice::test {

// Writes what is new of the file to the disk and lets go of its pages.
inline void drop_from_page_cache(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool done = descriptor >= 0 && ::fsync(descriptor) == 0 &&
                    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0;
  if (descriptor >= 0) ::close(descriptor);
  if (!done) throw std::runtime_error("cannot drop " + path.string());
}

}  // namespace sluice::test
