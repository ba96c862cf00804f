#include "weights/quantize/write_behind.h"

#include "base/syscalls.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace sluice::weights {
namespace {

File open_for_writing(const std::filesystem::path& path, bool& direct) {
  int descriptor = -1;
  do {
    descriptor = syscalls().open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  direct = descriptor >= 0;
  return direct ? File::adopt(descriptor, path) : File::open_for_writing(path);
}

}  // namespace

WriteBehind::WriteBehind(const std::filesystem::path& path, std::filesystem::path name)
    : file_(open_for_writing(path, direct_)), name_(std::move(name)) {}

void WriteBehind::append(std::span<const std::byte> block) {
  while (direct_ && block.size() >= kAlignment) {
    const Bytes most = std::min<Bytes>(block.size() / kAlignment * kAlignment, kMostPerCall);
    const ssize_t put = syscalls().write(file_.descriptor(), block.data(), most);
    if (put < 0 && errno == EINTR) continue;
    // The system refuses this kind of write, or any: writing through the page cache tells which.
    if (put < 0) {
      end_direct();
      break;
    }
    size_ += static_cast<Bytes>(put);
    block = block.subspan(static_cast<std::size_t>(put));
    if (static_cast<Bytes>(put) % kAlignment != 0) end_direct();
  }
  if (block.empty()) return;
  if (direct_) end_direct();
  write_through_cache(block);
}

void WriteBehind::end_direct() {
  direct_ = false;
  let_go_ = size_;
  ::fcntl(file_.descriptor(), F_SETFL, ::fcntl(file_.descriptor(), F_GETFL) & ~O_DIRECT);
}

// While this block's pages go to the disk, those of the blocks before it are waited for and dropped.
void WriteBehind::write_through_cache(std::span<const std::byte> block) {
  const Bytes begin = size_;
  write_all(file_, block, name_);
  size_ += block.size();
  ::sync_file_range(file_.descriptor(), static_cast<off_t>(begin), static_cast<off_t>(block.size()),
                    SYNC_FILE_RANGE_WRITE);
  let_go_before(begin / kAlignment * kAlignment);
}

void WriteBehind::let_go_before(Bytes end) {
  if (end <= let_go_) return;
  const auto begin = static_cast<off_t>(let_go_), size = static_cast<off_t>(end - let_go_);
  ::sync_file_range(file_.descriptor(), begin, size,
                    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
  ::posix_fadvise(file_.descriptor(), begin, size, POSIX_FADV_DONTNEED);
  let_go_ = end;
}

}  // namespace sluice::weights
