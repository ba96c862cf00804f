#include "bytes/read/shard_reader.h"

#include "bytes/read/readers.h"

#include <utility>

namespace sluice::bytes {

std::string_view to_string(ReadWay way) {
  switch (way) {
    case ReadWay::mmap:
      return "mmap";
    case ReadWay::pread:
      return "pread";
    case ReadWay::pread_uncached:
      return "pread uncached";
    case ReadWay::direct:
      break;
  }
  return "direct";
}

std::unique_ptr<ShardReader> open_shard_reader(ReadWay way, const File& file, DescribeOffset describe,
                                               Warn warn, std::optional<Bytes> size) {
  switch (way) {
    case ReadWay::mmap:
      return make_mmap_reader(file, std::move(describe), std::move(warn), size);
    case ReadWay::pread:
      return make_pread_reader(Caching::keep, file, std::move(describe), std::move(warn), size);
    case ReadWay::pread_uncached:
      return make_pread_reader(Caching::uncached, file, std::move(describe), std::move(warn), size);
    case ReadWay::direct:
      break;
  }
  return make_direct_reader(file, std::move(describe), std::move(warn), size);
}

}  // namespace sluice::bytes
