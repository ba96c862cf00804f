#pragma once
// A video's frames at a rate of one's own, upright and as 8-bit RGB, one at a time: a file of another or of a
// variable rate is sampled at times n / rate, each time the frame that is shown then.

#include "media/rgb_frame.h"

#include <sluice/units.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sluice::media {

struct ReadableVideo {
  int width = 0;  // upright
  int height = 0;
  double seconds = 0;
  Rational rate;  // the file's own, mean where it varies
  bool variable_rate = false;
  std::int64_t frames = 0;  // that come out at the rate asked for
  bool has_sound = false;
  std::vector<std::string> conversions;  // "30 to 24 frames a second", "turned by 90°", "BT.601 …"
};

// Reads the container and, where it does not tell how many frames there are, counts packets; decodes nothing.
// Error(bad_input) names the file: missing, no media file, no frames, a size beyond what is possible.
ReadableVideo probe_video(const std::filesystem::path& path, Rational rate);

class VideoReader {
 public:
  // Frames at `rate`, from number `first` of them on.  Error(bad_input) as probe_video().
  VideoReader(const std::filesystem::path& path, Rational rate, std::int64_t first = 0);
  ~VideoReader();
  VideoReader(const VideoReader&) = delete;
  VideoReader& operator=(const VideoReader&) = delete;

  // The next frame, valid until the next call; none after the last.  Error(corrupt_file) where the stream is
  // damaged, with the time.
  std::optional<RgbFrame> next();

 private:
  class Stream;
  std::unique_ptr<Stream> stream_;
};

}  // namespace sluice::media
