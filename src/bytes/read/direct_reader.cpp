// Reads past the page cache.

#include "bytes/read/direct_file.h"
#include "bytes/read/readers.h"
#include "bytes/read/shard_source.h"

#include <algorithm>
#include <utility>

namespace sluice::bytes {
namespace {

class DirectReader final : public SourceReader {
 public:
  DirectReader(const File& file, DescribeOffset describe, Warn warn, std::optional<Bytes> size)
      : SourceReader(file, std::move(describe), std::move(warn), size), direct_(open_direct(file)) {
    source_.count_request();  // the first read
  }

  ReadWay way() const override { return ReadWay::direct; }
  ReadAlignment alignment() const override { return direct_.alignment; }

  void read(Bytes offset, std::span<const std::span<std::byte>> to) override {
    const Bytes end = direct_end(source_, direct_.alignment, offset, to);
    SpanCursor cursor(to);
    while (offset < end) {
      ssize_t got = source_.read_some(direct_.file.descriptor(), cursor, offset, cursor.left(), 0);
      if (got < 0 && refuses_direct(static_cast<int>(-got))) {
        source_.warn_once(kDirectRefused);
        return source_.read_buffered(cursor, offset, end);
      }
      if (got < 0) source_.fail(offset, static_cast<int>(-got));
      if (got == 0) source_.fail_cut_short(offset, end);
      offset = finish_block(cursor, offset + static_cast<Bytes>(got), end);
    }
  }

 private:
  // A call may stop inside a block, at the end of the file and elsewhere: direct reads cannot go on there.
  Bytes finish_block(SpanCursor& cursor, Bytes offset, Bytes end) {
    const Bytes block = direct_.alignment.offset;
    const Bytes block_end = std::min(end, (offset + block - 1) / block * block);
    if (offset < block_end) source_.read_buffered(cursor, offset, block_end);
    return std::max(offset, block_end);
  }

  DirectFile direct_;
};

}  // namespace

std::unique_ptr<ShardReader> make_direct_reader(const File& file, DescribeOffset describe, Warn warn,
                                                std::optional<Bytes> size) {
  return std::make_unique<DirectReader>(file, std::move(describe), std::move(warn), size);
}

}  // namespace sluice::bytes
