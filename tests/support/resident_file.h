#pragma once
// Files whose pages are in the page cache or not, as a test says.  They lie in the build folder: the folder
// for temporary files may itself lie in memory, where nothing can be dropped.

#include "support/temporary_folder.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace sluice::test {

class ResidentFile {
 public:
  // Written, flushed (dirty pages are never dropped), nothing of it in memory.
  explicit ResidentFile(std::size_t size) : size_(size) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) content[i] = static_cast<char>(i * 2654435761u >> 13);
    write_file(path(), content);
    descriptor_ = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0 || ::fsync(descriptor_) != 0) throw std::runtime_error("cannot flush");
    // Reading brings in what is read and nothing else.
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM);
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  }
  ResidentFile(const ResidentFile&) = delete;
  ResidentFile& operator=(const ResidentFile&) = delete;
  ~ResidentFile() { ::close(descriptor_); }

  std::filesystem::path path() const { return folder_ / "file"; }
  std::size_t size() const { return size_; }

  void bring_in(std::size_t begin, std::size_t end) const { read(descriptor_, begin, end); }

  static void read(int descriptor, std::size_t begin, std::size_t end) {
    std::vector<char> bytes(1 << 20);
    while (begin < end) {
      const auto got =
          ::pread(descriptor, bytes.data(), std::min(bytes.size(), end - begin), static_cast<off_t>(begin));
      if (got <= 0) throw std::runtime_error("cannot read");
      begin += static_cast<std::size_t>(got);
    }
  }

  std::vector<bool> pages() const {
    void* map = ::mmap(nullptr, size_, PROT_NONE, MAP_SHARED, descriptor_, 0);
    std::vector<unsigned char> states((size_ + page() - 1) / page());
    const bool known = map != MAP_FAILED && ::mincore(map, size_, states.data()) == 0;
    ::munmap(map, size_);
    if (!known) throw std::runtime_error("cannot ask for pages");
    std::vector<bool> pages;
    for (unsigned char state : states) pages.push_back((state & 1) != 0);
    return pages;
  }
  // Share of the bytes [begin, end) that are in memory.
  double share(std::size_t begin, std::size_t end) const {
    const auto all = pages();
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin / page());
    const auto last = all.begin() + static_cast<std::ptrdiff_t>((end + page() - 1) / page());
    return static_cast<double>(std::count(first, last, true)) / static_cast<double>(last - first);
  }
  double share() const { return share(0, size_); }

  static std::size_t page() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

 private:
  TemporaryFolder folder_{SLUICE_BINARY_DIR};
  std::size_t size_;
  int descriptor_ = -1;
};

}  // namespace sluice::test
