// Reads through the page cache, which keeps what was read or, with RWF_DONTCACHE, lets go of it at once.

#include "base/syscalls.h"
#include "bytes/read/readers.h"
#include "bytes/read/shard_source.h"

#include <cerrno>
#include <utility>

namespace sluice::bytes {
namespace {

class PreadReader final : public SourceReader {
 public:
  using SourceReader::SourceReader;

  ReadWay way() const override { return ReadWay::pread; }

  void read(Bytes offset, std::span<const std::span<std::byte>> to) override {
    SpanCursor cursor(to);
    source_.read_buffered(cursor, offset, offset + cursor.left());
  }
};

class UncachedReader final : public SourceReader {
 public:
  using SourceReader::SourceReader;

  ReadWay way() const override { return refused_ ? ReadWay::pread : ReadWay::pread_uncached; }

  void read(Bytes offset, std::span<const std::span<std::byte>> to) override {
    SpanCursor cursor(to);
    const Bytes end = offset + cursor.left();
    while (offset < end && !refused_) {
      ssize_t got =
          source_.read_some(source_.file().descriptor(), cursor, offset, end - offset, kReadUncached);
      if (got == -EOPNOTSUPP || got == -EINVAL) {
        refused_ = true;
        source_.warn_once(
            "the system knows no uncached reads (RWF_DONTCACHE): what is read stays in the page cache");
      } else if (got < 0) {
        source_.fail(offset, static_cast<int>(-got));
      } else if (got == 0) {
        source_.fail_cut_short(offset, end);
      } else {
        offset += static_cast<Bytes>(got);
      }
    }
    source_.read_buffered(cursor, offset, end);
  }

 private:
  std::atomic<bool> refused_ = false;
};

}  // namespace

std::unique_ptr<ShardReader> make_pread_reader(Caching caching, const File& file, DescribeOffset describe,
                                               Warn warn, std::optional<Bytes> size) {
  if (caching == Caching::uncached) {
    return std::make_unique<UncachedReader>(file, std::move(describe), std::move(warn), size);
  }
  return std::make_unique<PreadReader>(file, std::move(describe), std::move(warn), size);
}

}  // namespace sluice::bytes
