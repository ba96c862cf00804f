#include "bytes/read/direct_file.h"

#include "base/syscalls.h"
#include "bytes/read/file_system.h"
#include "bytes/read/page_size.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <new>
#include <vector>

namespace sluice::bytes {
namespace {

// STATX_DIOALIGN, Linux 6.1, and where its answer lies in struct statx: older C libraries have no names for
// them, but keep the room.
constexpr unsigned kAskDirectAlignment = 0x2000;
constexpr std::size_t kMemoryAlignmentAt = 0x98, kOffsetAlignmentAt = 0x9c;
static_assert(sizeof(struct statx) == 256);

Error refused(const File& file, std::string_view reason) {
  return Error(ErrorKind::io,
               fmt::format("{}: cannot be read past the page cache on {}: {}", file.path().string(),
                           file_system_name(file), reason),
               "use --read-backend pread");
}

File open_again(const File& file) {
  // By descriptor: the name may mean another file by now.
  const std::string path = fmt::format("/proc/self/fd/{}", file.descriptor());
  int descriptor = -1;
  do {
    descriptor = syscalls().open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) throw refused(file, system_reason(errno));
  return File::adopt(descriptor, file.path());
}

std::uint32_t number_at(const struct statx& status, std::size_t place) {
  std::uint32_t number = 0;
  std::memcpy(&number, reinterpret_cast<const std::byte*>(&status) + place, sizeof number);
  return number;
}

// What the kernel says; empty if it does not know.  Zeros: no direct reads of this file.
std::optional<ReadAlignment> told_alignment(const File& file) {
  struct statx status {};
  if (syscalls().statx(file.descriptor(), "", AT_EMPTY_PATH, kAskDirectAlignment, &status) != 0) return {};
  if ((status.stx_mask & kAskDirectAlignment) == 0) return {};
  const Bytes offset = number_at(status, kOffsetAlignmentAt), memory = number_at(status, kMemoryAlignmentAt);
  // So that going on behind any number of blocks leaves the address aligned.
  return ReadAlignment{.offset = std::max(offset, memory), .memory = memory};
}

// Of the device below the file system; 0 where there is none or it does not say.
Bytes logical_block_size(const File& file) {
  const std::uint64_t device = file.identity().device;
  const std::string folder =
      fmt::format("/sys/dev/block/{}:{}", gnu_dev_major(device), gnu_dev_minor(device));
  Bytes size = 0;
  // A partition has its queue in the folder of the whole disk.
  for (const char* queue : {"/queue", "/../queue"}) {
    if (std::ifstream(folder + queue + "/logical_block_size") >> size) return size;
  }
  return 0;
}

// Where the kernel does not tell: the least multiples that may do, in the order in which to try them.
std::vector<ReadAlignment> likely_alignments(const File& file) {
  struct statfs status {};
  const bool known = ::fstatfs(file.descriptor(), &status) == 0;
  std::vector<Bytes> sizes = {logical_block_size(file), known ? static_cast<Bytes>(status.f_bsize) : 0,
                              page_size(), KiB(64)};
  std::erase_if(sizes, [](Bytes size) { return !std::has_single_bit(size) || size > MiB(1); });
  std::ranges::sort(sizes);
  std::vector<ReadAlignment> alignments;
  for (Bytes size : sizes) alignments.push_back({.offset = size, .memory = size});
  return alignments;
}

// Reads a block at an offset and into an address that are multiples of the alignment and of nothing larger.
// Returns the error's number, or 0.
int try_read(const File& direct, ReadAlignment alignment, Bytes file_size) {
  const auto room = std::align_val_t{2 * alignment.offset};
  auto release = [&](void* memory) { ::operator delete(memory, room); };
  std::unique_ptr<void, decltype(release)> memory(::operator new(3 * alignment.offset, room), release);
  const iovec piece{static_cast<std::byte*>(memory.get()) + alignment.memory, alignment.offset};
  const Bytes offset = file_size > alignment.offset ? alignment.offset : 0;
  ssize_t got = -1;
  do {
    got = syscalls().preadv2(direct.descriptor(), &piece, 1, static_cast<off_t>(offset), 0);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? errno : 0;
}

}  // namespace

DirectFile open_direct(const File& file) {
  File direct = open_again(file);
  std::vector<ReadAlignment> alignments;
  if (std::optional<ReadAlignment> told = told_alignment(file)) {
    if (told->memory == 0) throw refused(file, "the system says that it cannot");
    alignments = {*told};
  } else {
    alignments = likely_alignments(file);
  }
  int error_number = EINVAL;
  for (const ReadAlignment& alignment : alignments) {
    error_number = try_read(direct, alignment, file.identity().size);
    if (error_number == 0) return {std::move(direct), alignment};
    if (error_number != EINVAL) break;
  }
  throw refused(file, system_reason(error_number));
}

Bytes direct_end(const ShardSource& source, ReadAlignment alignment, Bytes offset,
                 std::span<const std::span<std::byte>> to) {
  bool fits = offset % alignment.offset == 0;
  Bytes end = offset;
  for (std::span<std::byte> span : to) {
    fits = fits && span.size() % alignment.offset == 0 &&
           reinterpret_cast<std::uintptr_t>(span.data()) % alignment.memory == 0;
    end += span.size();
  }
  if (!fits) {
    throw Error(ErrorKind::internal,
                fmt::format("{}: a direct read at byte {} does not fit the alignment of {} (addresses: {})",
                            source.file().path().string(), offset, alignment.offset, alignment.memory));
  }
  if (end > offset && offset >= source.size()) source.fail_cut_short(offset, offset + 1);
  return std::min(end, std::max(offset, source.size()));
}

bool refuses_direct(int error_number) {
  return error_number == EINVAL || error_number == EOPNOTSUPP;
}

}  // namespace sluice::bytes
