#pragma once
// An mp4 that any player opens: H.264 (yuv420p, BT.709 limited range, exact constant rate) and, if there is
// sound, AAC in stereo, at the sound's own rate where AAC knows it (mp4_sample_rate).  Frames are encoded as
// they come, so that no whole clip need exist.  Sound is given before the first frame; it is brought to the
// picture's length at its end (see sound_fit.h) and both start at 0 and end together. The file appears under
// its name in finish(), complete and with its index in front; until then it has a temporary name, and
// destroying the writer removes it.  The same input gives the same bytes.  One thread at a time. Whether the
// target may be written or overwritten is check_target's question (base/temporary_file.h), asked earlier.

#include <sluice/units.h>
#include "media/rgb_frame.h"
#include "media/stereo_wave.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace sluice::media {

struct Mp4Options {
  int width = 0;  // both even
  int height = 0;
  Rational rate;
  std::int64_t frames = 0;                           // exactly as many will come
  std::optional<StereoWave> sound;                   // looked at by the constructor only; none: one stream
  std::map<std::string, std::string> metadata = {};  // keys differ in more than case; UTF-8
  int crf = 19;
  std::string preset = "veryfast";
  int threads = 4;  // of x264; the bytes depend on it, so it is no matter of the machine
};

class Mp4Writer {
 public:
  // Error(usage): sizes or rates that the format cannot have.  Error(non_finite): a sample is NaN.
  // Error(io): an encoder is missing, or the file cannot be written; it names what.
  Mp4Writer(const std::filesystem::path& target, const Mp4Options& options);
  ~Mp4Writer();
  Mp4Writer(const Mp4Writer&) = delete;
  Mp4Writer& operator=(const Mp4Writer&) = delete;

  // Error(io) names the target when the disk is full.
  void add_frame(const RgbFrame& frame);

  // Error(internal) when fewer or more frames came than promised.
  void finish();

 private:
  class File;
  std::unique_ptr<File> file_;
};

}  // namespace sluice::media
