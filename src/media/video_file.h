#pragma once
// A file's video stream, opened and described without decoding it: what VideoReader decodes and probe_video()
// tells.

#include "media/demuxer.h"
#include "media/orientation.h"
#include "media/video_reader.h"
#include "media/video_timeline.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

struct AVStream;

namespace sluice::media {

struct VideoGeometry {
  int stored_width = 0;
  int stored_height = 0;
  int square_width = 0;  // of stored_height rows of square pixels
  Orientation orientation;

  int width() const { return orientation.transposed ? stored_height : square_width; }
  int height() const { return orientation.transposed ? square_width : stored_height; }
};

class VideoFile {
 public:
  // Error(bad_input): missing, something else, a still picture, no video in it, HDR, an impossible size.
  // Error(corrupt_file): cut short.
  explicit VideoFile(const std::filesystem::path& path);

  AVFormatContext& demuxer() const { return *demuxer_; }
  AVStream& stream() const { return *stream_; }
  const std::filesystem::path& path() const { return path_; }
  VideoGeometry geometry() const;

  // Reads every packet of the stream; the file is at its end then.  Error(bad_input) where there is none,
  // Error(corrupt_file) where the file ends before its own index.
  struct Scan {
    Timeline timeline;
    // The stream's time of the first shown frame.  Without, times are by count: packets do not tell them.
    std::optional<std::int64_t> origin;
  };
  Scan scan();

  // `conversions` and everything else, for frames at `rate`.
  ReadableVideo describe(const Scan& scan, Rational rate) const;

 private:
  std::filesystem::path path_;
  DemuxerPtr demuxer_;
  AVStream* stream_ = nullptr;  // of the demuxer
};

}  // namespace sluice::media
