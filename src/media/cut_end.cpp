#include "media/cut_end.h"

#include "base/file.h"
#include "media/byte_cursor.h"

extern "C" {
#include <libavutil/bswap.h>
#include <libavutil/crc.h>
}

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::media {
namespace {

std::string read_at(const File& file, Bytes offset, Bytes size) {
  std::string bytes(size, '\0');
  read_exact(file, std::as_writable_bytes(std::span(bytes)), offset, "the sound");
  return bytes;
}

// A RIFF file: chunks of a name, a size and as many bytes, padded to an even number.
constexpr Bytes kRiffHeader = 12, kChunkHeader = 8, kLongSizes = 16;
// Programs that cannot go back to the header leave sizes just below 2^31 or 2^32 in it, or none.
constexpr Bytes kUnknownSize = 0x7fff'0000;

// What the data chunk of RF64, whose own size is no size, has.
Bytes long_data_size(const File& file, Bytes chunk, Bytes size) {
  if (chunk + kChunkHeader + kLongSizes > size) return 0;
  const std::string bytes = read_at(file, chunk + kChunkHeader, kLongSizes);
  ByteCursor cursor(std::as_bytes(std::span(bytes)), ByteOrder::little);
  cursor.skip(8);  // the size of all
  const Bytes low = cursor.u32();
  return low | Bytes{cursor.u32()} << 32;
}

bool is_cut_wav(const File& file, Bytes size) {
  Bytes long_size = 0;
  for (Bytes at = kRiffHeader; at + kChunkHeader <= size;) {
    const std::string header = read_at(file, at, kChunkHeader);
    ByteCursor cursor(std::as_bytes(std::span(header)), ByteOrder::little);
    const std::string name(cursor.text(4));
    const Bytes chunk = cursor.u32();
    if (name == "ds64") long_size = long_data_size(file, at, size);
    if (name == "data") {
      const bool told = long_size > 0 || (chunk > 0 && chunk < kUnknownSize);
      return told && at + kChunkHeader + (long_size > 0 ? long_size : chunk) > size;
    }
    at += kChunkHeader + chunk + chunk % 2;
  }
  return true;
}

// An Ogg page: the mark, a version, its kind, 16 bytes of numbers, a checksum, how many segments, their
// sizes, the segments.
constexpr std::string_view kPageMark = "OggS";
constexpr std::size_t kChecksumAt = 22, kSegmentsAt = 26, kPageHeader = 27;
constexpr Bytes kLargestPage = kPageHeader + 255 + 255 * 255;

// Bytes that the page has; more than there are where its header is cut.
std::size_t page_size(std::string_view page) {
  if (page.size() < kPageHeader) return kPageHeader;
  const auto segments = static_cast<unsigned char>(page[kSegmentsAt]);
  std::size_t size = kPageHeader + segments;
  for (char segment : page.substr(kPageHeader, segments)) size += static_cast<unsigned char>(segment);
  return size;
}

// CRC-32, most significant bit first, over the page with zeros in its place.
bool has_its_checksum(std::string page) {
  const std::string stored = page.substr(kChecksumAt, 4);
  ByteCursor cursor(std::as_bytes(std::span(stored)), ByteOrder::little);
  std::fill_n(page.begin() + kChecksumAt, 4, '\0');
  const std::uint32_t sum = av_crc(av_crc_get_table(AV_CRC_32_IEEE), 0,
                                   reinterpret_cast<const std::uint8_t*>(page.data()), page.size());
  return cursor.u32() == av_bswap32(sum);  // the table is for the other order of bytes
}

// Some programs do not mark the last page of a stream, so a file cut between pages looks whole.
bool is_cut_ogg(const File& file, Bytes size) {
  const Bytes tail = std::min(size, kLargestPage);
  const std::string end = read_at(file, size - tail, tail);
  const std::size_t last = end.rfind(kPageMark);
  if (last == std::string::npos) return true;
  const std::string_view page = std::string_view(end).substr(last);
  const std::size_t whole = page_size(page);
  return whole > page.size() || !has_its_checksum(std::string(page.substr(0, whole)));
}

}  // namespace

bool lost_its_end(const std::filesystem::path& path) {
  const File file = File::open(path);
  const Bytes size = file.identity().size;
  if (size < kRiffHeader) return false;
  const std::string start = read_at(file, 0, kRiffHeader);
  if (start.starts_with(kPageMark)) return is_cut_ogg(file, size);
  const bool wav = (start.starts_with("RIFF") || start.starts_with("RF64")) && start.ends_with("WAVE");
  return wav && is_cut_wav(file, size);
}

}  // namespace sluice::media
