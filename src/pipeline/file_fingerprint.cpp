#include "pipeline/file_fingerprint.h"

#include "base/file.h"
#include "bytes/format/checksum.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <algorithm>
#include <vector>

namespace sluice::pipeline {
namespace {

constexpr Bytes kSample = KiB(4);
constexpr Bytes kSamples = 8;

std::string checksum_of_samples(const File& file, Bytes begin, Bytes end) {
  // Only what is asked for comes into the page cache.
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_RANDOM);
  const Bytes data = end - begin, piece = std::min(kSample, data);
  std::vector<std::byte> buffer(piece);
  bytes::Checksum checksum;
  for (Bytes i = 0; i < kSamples; ++i) {
    read_exact(file, buffer, begin + (data - piece) / (kSamples - 1) * i, "a sample");
    checksum.add(buffer);
  }
  return checksum.text();
}

}  // namespace

std::string sampled_checksum(const Shard& shard) {
  return checksum_of_samples(File::open(shard.path), shard.header_size, shard.file_size);
}

std::string sampled_checksum(const std::filesystem::path& path) {
  const File file = File::open(path);
  const Bytes size = file.identity().size;
  return fmt::format("{}-{}", size, checksum_of_samples(file, 0, size));
}

}  // namespace sluice::pipeline
