#include "media/wav_writer.h"

#include <sluice/error.h>
#include <sluice/units.h>
#include "base/file.h"
#include "base/temporary_file.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace sluice::media {
namespace {

constexpr std::uint16_t kPcm = 1;
constexpr std::uint16_t kChannels = 2;
constexpr std::uint16_t kBitsPerSample = 16;
constexpr std::uint32_t kFrameBytes = kChannels * kBitsPerSample / 8;
constexpr std::uint32_t kHeaderBytes = 44;

// RIFF is little-endian whatever the machine.
class ByteRow {
 public:
  explicit ByteRow(std::size_t size) { bytes_.reserve(size); }
  void text(std::string_view four) {
    for (char letter : four) bytes_.push_back(static_cast<std::byte>(letter));
  }
  void u16(std::uint16_t value) {
    bytes_.push_back(static_cast<std::byte>(value & 0xff));
    bytes_.push_back(static_cast<std::byte>(value >> 8));
  }
  void u32(std::uint32_t value) {
    u16(static_cast<std::uint16_t>(value & 0xffff));
    u16(static_cast<std::uint16_t>(value >> 16));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void put_header(ByteRow& row, std::uint32_t sample_rate, std::uint32_t data_bytes) {
  row.text("RIFF");
  row.u32(kHeaderBytes - 8 + data_bytes);
  row.text("WAVEfmt ");
  row.u32(16);  // bytes of the format that follow
  row.u16(kPcm);
  row.u16(kChannels);
  row.u32(sample_rate);
  row.u32(sample_rate * kFrameBytes);
  row.u16(static_cast<std::uint16_t>(kFrameBytes));
  row.u16(kBitsPerSample);
  row.text("data");
  row.u32(data_bytes);
}

}  // namespace

void write_wav(const std::filesystem::path& target, const StereoWave& wave) {
  check_wave(wave);
  Bytes data_bytes = static_cast<Bytes>(wave.samples()) * kFrameBytes;
  if (data_bytes > std::numeric_limits<std::uint32_t>::max() - kHeaderBytes) {
    throw Error(ErrorKind::usage,
                fmt::format("{}: a WAV file cannot hold {}", target.string(), format_bytes(data_bytes)),
                "leave --wav out: the mp4 has the sound");
  }
  ByteRow row(kHeaderBytes + data_bytes);
  put_header(row, static_cast<std::uint32_t>(wave.sample_rate), static_cast<std::uint32_t>(data_bytes));
  for (std::size_t i = 0; i < wave.left.size(); ++i) {
    row.u16(static_cast<std::uint16_t>(to_pcm16(wave.left[i], wave.pcm)));
    row.u16(static_cast<std::uint16_t>(to_pcm16(wave.right[i], wave.pcm)));
  }
  TemporaryFile file(target);
  write_all(File::open_for_writing(file.path()), row.bytes(), file.target());
  file.commit();
}

}  // namespace sluice::media
