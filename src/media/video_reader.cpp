#include "media/video_reader.h"

#include <sluice/error.h>
#include "media/colour_tags.h"
#include "media/frame_rows.h"
#include "media/row_stretch.h"
#include "media/video_file.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
}

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

namespace sluice::media {
namespace {

// A decoded frame and which one of the timeline it is.
struct PlacedFrame {
  FramePtr frame;
  std::size_t index = 0;
};

struct Sampling {
  Rational rate;
  std::int64_t first = 0;
};

}  // namespace

class VideoReader::Stream {
 public:
  Stream(const std::filesystem::path& path, Sampling sampling, VideoFile::Scan scan,
         const VideoGeometry& geometry)
      : path_(path),
        rate_(sampling.rate),
        number_(sampling.first),
        scan_(std::move(scan)),
        geometry_(geometry),
        stretch_(geometry.stored_width, geometry.square_width),
        packet_(new_packet()) {
    frames_ = sampled_frames(scan_.timeline, rate_);
    rgb_.resize(std::size_t{3} * geometry_.width() * geometry_.height());
    stored_row_.resize(std::size_t{3} * geometry_.stored_width);
    square_row_.resize(std::size_t{3} * geometry_.square_width);
    if (number_ < frames_ && !begin_at_key_frame(frame_shown_at(scan_.timeline, rate_, number_)))
      begin_anew();
  }

  std::optional<RgbFrame> next() {
    if (number_ >= frames_) return std::nullopt;
    const std::size_t wanted = frame_shown_at(scan_.timeline, rate_, number_);
    while (ahead_.frame == nullptr && !ended_) ahead_ = decode_next();
    while (ahead_.frame != nullptr && (shown_.frame == nullptr || ahead_.index <= wanted)) {
      shown_ = std::exchange(ahead_, decode_next());
      converted_ = false;
    }
    if (shown_.frame == nullptr || (ended_ && ahead_.frame == nullptr && shown_.index < wanted))
      throw damaged();
    if (!converted_) convert(*shown_.frame);
    ++number_;
    return RgbFrame{.height = geometry_.height(), .width = geometry_.width(), .pixels = rgb_};
  }

 private:
  void begin_anew() {
    ended_ = false;
    file_.emplace(path_);
    codec_ = open_decoder(file_->stream(), path_);
  }

  // Only where the container has an index of its key frames, and only if the first packet behind the jump is
  // the very key frame: else decoding begins at the start.
  bool begin_at_key_frame(std::size_t wanted) {
    std::size_t key = wanted;
    while (key > 0 && !scan_.timeline.frames[key].is_key) --key;
    if (key == 0 || !scan_.origin) return false;
    begin_anew();
    const std::string_view container = file_->demuxer().iformat->name;
    if (!container.starts_with("mov") && !container.starts_with("matroska")) return false;
    const std::int64_t time = *scan_.origin + scan_.timeline.frames[key].at;
    if (av_seek_frame(&file_->demuxer(), file_->stream().index, time, AVSEEK_FLAG_BACKWARD) < 0) return false;
    if (!read_packet() || packet_->pts != time || (packet_->flags & AV_PKT_FLAG_KEY) == 0) return false;
    return send_packet();
  }

  bool read_packet() {
    for (;;) {
      av_packet_unref(packet_.get());
      if (av_read_frame(&file_->demuxer(), packet_.get()) < 0) return false;
      if (packet_->stream_index == file_->stream().index) return true;
    }
  }

  bool send_packet() { return avcodec_send_packet(codec_.get(), packet_.get()) >= 0; }

  // The next frame in the order of showing; none at the end.
  PlacedFrame decode_next() {
    PlacedFrame next{.frame = new_frame()};
    for (;;) {
      const int result = avcodec_receive_frame(codec_.get(), next.frame.get());
      if (result >= 0) {
        next.index = index_of(*next.frame);
        return next;
      }
      if (result == AVERROR_EOF) {
        ended_ = true;
        return {};
      }
      const bool goes_on = result == AVERROR(EAGAIN) &&
                           (read_packet() ? send_packet() : avcodec_send_packet(codec_.get(), nullptr) >= 0);
      if (!goes_on) throw damaged();
    }
  }

  // By its time, or by counting where the file has none.
  std::size_t index_of(const AVFrame& frame) {
    const std::size_t counted = decoded_++;
    if (!scan_.origin || frame.best_effort_timestamp == AV_NOPTS_VALUE) return counted;
    const std::int64_t at = frame.best_effort_timestamp - *scan_.origin;
    const auto after = std::ranges::upper_bound(scan_.timeline.frames, at, {}, &ShownFrame::at);
    return after == scan_.timeline.frames.begin()
               ? 0
               : static_cast<std::size_t>(after - scan_.timeline.frames.begin()) - 1;
  }

  void convert(const AVFrame& frame) {
    if (frame.width != geometry_.stored_width || frame.height != geometry_.stored_height) {
      throw Error(
          ErrorKind::bad_input,
          fmt::format("{}: changes its size from {} x {} to {} x {} {}", path_.string(),
                      geometry_.stored_width, geometry_.stored_height, frame.width, frame.height, when()),
          "convert it to one size first");
    }
    if (frame.decode_error_flags != 0 || (frame.flags & AV_FRAME_FLAG_CORRUPT) != 0) throw damaged();
    FrameRows rows(frame, colour_meaning(frame, Untagged::video, path_), path_);
    for (int row = 0; row < frame.height; ++row) {
      read_row(rows, row);
      place_row(square_row_, row, geometry_.square_width, frame.height, geometry_.orientation, rgb_);
    }
    converted_ = true;
  }

  void read_row(FrameRows& rows, int row) {
    std::vector<std::uint8_t>& to = stretch_.is_needed() ? stored_row_ : square_row_;
    if (rows.is_grey()) {
      grey_row_.resize(static_cast<std::size_t>(geometry_.stored_width));
      rows.grey(row, grey_row_);
      for (std::size_t i = 0; i < grey_row_.size(); ++i) std::fill_n(&to[3 * i], 3, grey_row_[i]);
    } else {
      rows.rgb(row, to);
    }
    if (stretch_.is_needed()) stretch_.stretch(stored_row_, square_row_);
  }

  std::string when() const {
    return fmt::format("at {:.3f} s", static_cast<double>(number_) / rate_.value());
  }
  Error damaged() const {
    return Error(ErrorKind::corrupt_file, fmt::format("{}: the video is damaged {}", path_.string(), when()),
                 "copy or download it again, or use a part that plays");
  }

  std::filesystem::path path_;
  Rational rate_;
  std::int64_t number_;  // of the next frame out
  std::int64_t frames_ = 0;
  VideoFile::Scan scan_;
  VideoGeometry geometry_;
  RowStretch stretch_;

  std::optional<VideoFile> file_;
  CodecPtr codec_;
  PacketPtr packet_;
  std::size_t decoded_ = 0;
  bool ended_ = false;
  PlacedFrame ahead_;  // the first that is not yet shown
  PlacedFrame shown_;
  bool converted_ = false;  // whether rgb_ is of shown_

  std::vector<std::uint8_t> rgb_;  // upright
  std::vector<std::uint8_t> stored_row_, square_row_, grey_row_;
};

VideoReader::VideoReader(const std::filesystem::path& path, Rational rate, std::int64_t first) {
  VideoFile file(path);
  VideoFile::Scan scan = file.scan();
  stream_ = std::make_unique<Stream>(path, Sampling{rate, first}, std::move(scan), file.geometry());
}

VideoReader::~VideoReader() = default;

std::optional<RgbFrame> VideoReader::next() {
  return stream_->next();
}

}  // namespace sluice::media
