#pragma once
// The readers behind open_shard_reader(), one a way; see there.

#include "bytes/read/shard_reader.h"

namespace sluice::bytes {

enum class Caching { keep, uncached };  // uncached: with RWF_DONTCACHE

std::unique_ptr<ShardReader> make_pread_reader(Caching caching, const File& file, DescribeOffset describe,
                                               Warn warn, std::optional<Bytes> size);
std::unique_ptr<ShardReader> make_direct_reader(const File& file, DescribeOffset describe, Warn warn,
                                                std::optional<Bytes> size);
std::unique_ptr<ShardReader> make_mmap_reader(const File& file, DescribeOffset describe, Warn warn,
                                              std::optional<Bytes> size);

}  // namespace sluice::bytes
