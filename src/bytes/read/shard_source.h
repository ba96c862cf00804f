#pragma once
// The file below a reader, as all readers need it: how large it must be, buffered calls, the words of its
// errors, and what is counted and told.  Any thread.

#include "base/file.h"
#include "bytes/read/shard_reader.h"
#include "bytes/read/span_cursor.h"

#include <sys/types.h>
#include <atomic>
#include <optional>

namespace sluice::bytes {

class ShardSource {
 public:
  ShardSource(const File& file, DescribeOffset describe, Warn warn, std::optional<Bytes> size);

  const File& file() const { return file_; }
  Bytes size() const { return size_; }  // what the file must have
  std::uint64_t requests() const { return requests_; }

  // One preadv2 of at most `most` bytes, repeated while signals interrupt it.  Moves `to` on; returns the
  // bytes read, 0 at the end of the file, or the error's number below 0.
  ssize_t read_some(int descriptor, SpanCursor& to, Bytes offset, Bytes most, int flags);

  // Fills `to` with [offset, end) through the page cache.
  void read_buffered(SpanCursor& to, Bytes offset, Bytes end);

  [[noreturn]] void fail(Bytes offset, int error_number) const;
  // Nothing came at `offset`, although there must be bytes up to `end`.
  [[noreturn]] void fail_cut_short(Bytes offset, Bytes end) const;

  void count_request() { ++requests_; }
  // "<file>: <what>" to the receiver of warnings; for refusals that come again: the first time only.
  void warn(std::string_view what) const;
  void warn_once(std::string_view what);

 private:
  std::string describe(Bytes offset) const;

  const File& file_;
  const DescribeOffset describe_;
  const Warn warn_;
  const Bytes size_;
  std::atomic<std::uint64_t> requests_ = 0;
  std::atomic<bool> warned_ = false;
};

// A ShardReader over a ShardSource.
class SourceReader : public ShardReader {
 public:
  SourceReader(const File& file, DescribeOffset describe, Warn warn, std::optional<Bytes> size)
      : source_(file, std::move(describe), std::move(warn), size) {}

  std::uint64_t requests() const override { return source_.requests(); }

 protected:
  ShardSource source_;
};

}  // namespace sluice::bytes
