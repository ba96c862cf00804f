#include "bytes/read/shard_source.h"

#include "base/syscalls.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sluice::bytes {

ShardSource::ShardSource(const File& file, DescribeOffset describe, Warn warn, std::optional<Bytes> size)
    : file_(file),
      describe_(std::move(describe)),
      warn_(std::move(warn)),
      size_(size ? *size : file.identity().size) {}

ssize_t ShardSource::read_some(int descriptor, SpanCursor& to, Bytes offset, Bytes most, int flags) {
  std::span<const iovec> pieces = to.next(std::min(most, kMostPerCall));
  ssize_t got = -1;
  do {
    count_request();
    got = syscalls().preadv2(descriptor, pieces.data(), static_cast<int>(pieces.size()),
                             static_cast<off_t>(offset), flags);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return -errno;
  to.advance(static_cast<Bytes>(got));
  return got;
}

void ShardSource::read_buffered(SpanCursor& to, Bytes offset, Bytes end) {
  while (offset < end) {
    ssize_t got = read_some(file_.descriptor(), to, offset, end - offset, 0);
    if (got < 0) fail(offset, static_cast<int>(-got));
    if (got == 0) fail_cut_short(offset, end);
    offset += static_cast<Bytes>(got);
  }
}

void ShardSource::fail(Bytes offset, int error_number) const {
  throw cannot_read(file_, describe(offset), offset, error_number);
}

void ShardSource::fail_cut_short(Bytes offset, Bytes end) const {
  throw Error(ErrorKind::corrupt_file,
              fmt::format("{}: cannot read {} at byte {}: the file has {} bytes, but must have {}",
                          file_.path().string(), describe(offset), offset, file_.identity().size,
                          std::max(size_, end)),
              "the file was cut short: fetch it again and keep it unchanged while it is in use");
}

void ShardSource::warn(std::string_view what) const {
  if (warn_) warn_(fmt::format("{}: {}", file_.path().string(), what));
}

void ShardSource::warn_once(std::string_view what) {
  if (!warned_.exchange(true)) warn(what);
}

std::string ShardSource::describe(Bytes offset) const {
  return describe_ ? describe_(offset) : "the data";
}

}  // namespace sluice::bytes
