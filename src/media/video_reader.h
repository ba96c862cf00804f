#pragma once
// A video's frames at a rate of one's own, upright, with square pixels and as 8-bit RGB, one at a time: a
// file of another or of a variable rate is sampled at times n / rate, each time the frame that is shown then
// (how times are rounded: video_timeline.h).  Time 0 is the first shown frame, whatever the file's clock
// says.  Colours follow the stream's tags; untagged ones are BT.709 from 720 lines on, else BT.601, and that
// is told.  Sound is not looked at.

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

// Reads the container and the times of all packets of the stream; decodes nothing (but what libav wants to
// see of a stream that does not describe itself).  Error(bad_input) names the file: missing, something else,
// a still picture, no frames, HDR colours (PQ, HLG), a size beyond what is possible. Error(corrupt_file): cut
// short.
ReadableVideo probe_video(const std::filesystem::path& path, Rational rate);

class VideoReader {
 public:
  // Frames at `rate`, from number `first` (0 or more) of them on; decoding begins at a key frame before it
  // where the container leads there exactly, else at the start.  Errors as probe_video().  One thread at a
  // time; memory for the decoder's frames and one picture.
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
