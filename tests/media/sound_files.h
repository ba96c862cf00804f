#pragma once
// Files of sound for tests: WAV byte by byte, everything else through libav's encoders.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::media {

using Channels = std::vector<std::vector<float>>;  // equally long

struct WavFile {
  int sample_rate = 48000;
  int channels = 2;
  int bits = 16;
  bool is_float = false;
  std::string samples;      // little-endian, channels in turn
  std::int64_t told = -1;   // size of the data that the header tells; -1: the true one
  bool extensible = false;  // names no loudspeakers otherwise: with the usual ones of 5.1

  std::string bytes() const;
};

// Integers of `bits` bits (8: unsigned, as WAV has them), channels in turn.
std::string stored_samples(const std::vector<std::int64_t>& samples, int bits);
std::string stored_floats(const std::vector<float>& samples);

// Noise without its highest frequencies, [-1, 1]: nothing else is as much like it as itself, and lossy
// formats keep it.
Channels soft_noise(std::size_t samples);

// By how many samples `got`, at least as long, lies behind `want`: at most 1500.
int delay_of(const std::vector<float>& got, const std::vector<float>& want);

void write_bytes(const std::filesystem::path& path, const std::string& bytes);

struct SoundFormat {
  std::string encoder;        // "flac"
  std::string sample_format;  // "s16", as libav names it
  int sample_rate = 48000;
};

// The container follows from the name.
void encode_sound_file(const std::filesystem::path& path, const SoundFormat& format,
                       const Channels& channels);

}  // namespace sluice::media
