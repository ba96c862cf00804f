#pragma once
// What a media file says about itself, for `sluice inspect` and for tests: streams, counts, rates, lengths
// and tags. Reads any file that the libav at hand can open; decodes nothing.

#include <sluice/units.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace sluice::media {

struct VideoStream {
  std::string codec;  // "h264"
  int width = 0;
  int height = 0;
  std::int64_t frames = 0;
  Rational rate;
  double start_seconds = 0;
  double seconds = 0;
  std::string pixel_format;  // "yuv420p"
  std::string matrix;        // "bt709"; "unknown" where the file does not say
  std::string primaries;
  std::string transfer;
  std::string range;  // "tv" or "pc"
};

struct SoundStream {
  std::string codec;  // "aac"
  int sample_rate = 0;
  int channels = 0;
  double start_seconds = 0;
  double seconds = 0;
};

struct MediaInfo {
  std::string container;  // "mov,mp4,m4a,3gp,3g2,mj2"
  double seconds = 0;
  std::vector<VideoStream> video;
  std::vector<SoundStream> sound;
  std::map<std::string, std::string> metadata;
};

// Error(bad_input) names a file that is missing or no media file.
MediaInfo probe(const std::filesystem::path& path);

// The file's tags alone, without those that only describe the container (major_brand and the like).
std::map<std::string, std::string> read_metadata(const std::filesystem::path& path);

}  // namespace sluice::media
