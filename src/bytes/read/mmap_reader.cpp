// Copies out of a mapping of the whole file.

#include "bytes/read/mapping.h"
#include "bytes/read/page_size.h"
#include "bytes/read/readers.h"
#include "bytes/read/shard_source.h"

#include <sys/mman.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

namespace sluice::bytes {
namespace {

class MmapReader final : public SourceReader {
 public:
  MmapReader(const File& file, DescribeOffset describe, Warn warn, std::optional<Bytes> size)
      : SourceReader(file, std::move(describe), std::move(warn), size) {
    if (source_.size() > 0) current();
  }

  ReadWay way() const override { return ReadWay::mmap; }

  void read(Bytes offset, std::span<const std::span<std::byte>> to) override {
    const Bytes end = offset + SpanCursor(to).left();
    if (offset == end) return;
    if (end > source_.size()) source_.fail_cut_short(std::max(offset, source_.size()), end);
    const std::shared_ptr<const Mapping> mapping = current();
    const std::byte* from = mapping->bytes().data() + offset;
    for (std::span<std::byte> span : to) {
      if (!span.empty()) std::memcpy(span.data(), from, span.size());
      from += span.size();
    }
    check(mapping, offset, end);
  }

  void let_go(Bytes begin, Bytes end) override {
    end = std::min(end, source_.size());
    if (begin >= end) return;
    const std::shared_ptr<const Mapping> mapping = current();
    // Whole pages: what of the first and last belongs to others is mapped again when it is touched.
    begin = begin / page_size() * page_size();
    auto* address = const_cast<std::byte*>(mapping->bytes().data() + begin);
    ::madvise(address, end - begin, MADV_DONTNEED);
  }

 private:
  std::shared_ptr<const Mapping> map() const {
    auto mapping = std::make_shared<const Mapping>(source_.file(), source_.size());
    // The readers of a shard go through it in order, each a piece: larger steps of reading ahead suit them.
    ::madvise(const_cast<std::byte*>(mapping->bytes().data()), mapping->bytes().size(), MADV_SEQUENTIAL);
    return mapping;
  }

  std::shared_ptr<const Mapping> current() {
    std::lock_guard lock(mutex_);
    if (mapping_ == nullptr) mapping_ = map();
    return mapping_;
  }

  // The copy holds zeros for what the file no longer has, and for what the disk fails to deliver.
  void check(const std::shared_ptr<const Mapping>& mapping, Bytes offset, Bytes end) {
    const Bytes size = source_.file().identity().size;
    const bool damaged = mapping->damaged();
    if (damaged) forget(mapping);
    // The rest of the file's last page reads as zeros without a fault.
    if (size < end) source_.fail_cut_short(std::max(offset, size), end);
    if (damaged && size < source_.size()) source_.fail_cut_short(offset, end);
    if (damaged) source_.fail(offset, EIO);
  }

  // Once damaged it stays so: a later read maps the file as it is then.
  void forget(const std::shared_ptr<const Mapping>& damaged) {
    std::lock_guard lock(mutex_);
    if (mapping_ == damaged) mapping_ = nullptr;
  }

  std::mutex mutex_;
  std::shared_ptr<const Mapping> mapping_;  // guarded by mutex_; empty until it is needed (again)
};

}  // namespace

std::unique_ptr<ShardReader> make_mmap_reader(const File& file, DescribeOffset describe, Warn warn,
                                              std::optional<Bytes> size) {
  return std::make_unique<MmapReader>(file, std::move(describe), std::move(warn), size);
}

}  // namespace sluice::bytes
