#include "media/video_file.h"

#include <sluice/error.h>
#include "bytes/format/impostor.h"
#include "media/colour_tags.h"
#include "media/mp4_boxes.h"
#include "media/stranger.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/frame.h>
}

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

namespace sluice::media {
namespace {

namespace fs = std::filesystem;

constexpr Wanted kVideo{"a video", "give the video itself: mp4, mov, mkv, webm or the like"};
constexpr int kMostSide = 16384;

DemuxerPtr open_video(const fs::path& path) {
  refuse_stranger(path, kVideo);
  if (bytes::is_video(path)) check_mp4_is_whole(path);
  return open_media_with_streams(path);
}

void refuse_other_demuxers(const AVFormatContext& demuxer, const fs::path& path) {
  const std::string_view name = demuxer.iformat->name;
  if (name.ends_with("_pipe") || name == "image2" || name == "ico") {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is a still picture ({}), not a video", path.string(), name),
                "give it with --image");
  }
  if (name == "tty")
    throw Error(ErrorKind::bad_input, fmt::format("{}: is text, not a video", path.string()),
                std::string(kVideo.remedy));
}

bool is_real_video(const AVStream& stream) {
  return stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
         (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) == 0;
}

AVStream& find_video(const AVFormatContext& demuxer, const fs::path& path) {
  const std::span streams(demuxer.streams, demuxer.nb_streams);
  const auto found =
      std::ranges::find_if(streams, [](const AVStream* stream) { return is_real_video(*stream); });
  if (found != streams.end()) return **found;
  throw Error(ErrorKind::bad_input, fmt::format("{}: has no video in it", path.string()),
              "give a file with moving pictures; sound alone is given with --audio");
}

// The stream's tags, as a frame would have them.
FramePtr tagged_frame(const AVCodecParameters& codec) {
  FramePtr frame = new_frame();
  frame->format = codec.format;
  frame->width = codec.width;
  frame->height = codec.height;
  frame->colorspace = codec.color_space;
  frame->color_range = codec.color_range;
  frame->color_trc = codec.color_trc;
  frame->color_primaries = codec.color_primaries;
  frame->chroma_location = codec.chroma_location;
  return frame;
}

Orientation orientation_of(const AVStream& stream) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  const AVPacketSideData* matrix = av_packet_side_data_get(
      stream.codecpar->coded_side_data, stream.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
  const std::uint8_t* data = matrix == nullptr ? nullptr : matrix->data;
#else
  const std::uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
#endif
  if (data == nullptr) return {};
  return orientation_of_matrix(
      std::span<const std::int32_t, 9>(reinterpret_cast<const std::int32_t*>(data), 9));
}

// What one packet tells.
struct PacketTime {
  std::int64_t pts;
  std::int64_t dts;
  std::int64_t duration;
  bool is_key;
};

Rational rate_of(const AVStream& stream) {
  for (const AVRational& rate : {stream.avg_frame_rate, stream.r_frame_rate})
    if (rate.num > 0 && rate.den > 0) return {rate.num, rate.den};
  return {0, 1};
}

bool lack(const std::vector<PacketTime>& packets, std::int64_t PacketTime::*time) {
  return std::ranges::any_of(packets,
                             [&](const PacketTime& packet) { return packet.*time == AV_NOPTS_VALUE; });
}

// Packets without times follow each other at the stream's rate.
VideoFile::Scan count_times(const std::vector<PacketTime>& packets, const AVStream& stream) {
  const Rational rate = rate_of(stream).num > 0 ? rate_of(stream) : Rational{25, 1};  // libav's own guess
  Timeline timeline{.tick = {rate.den, rate.num}, .end = static_cast<std::int64_t>(packets.size())};
  for (const PacketTime& packet : packets)
    timeline.frames.push_back({static_cast<std::int64_t>(timeline.frames.size()), packet.is_key});
  return {.timeline = std::move(timeline), .origin = std::nullopt};
}

// What the last packet says, if the one before says the truth about itself (libav guesses where a file does
// not tell); else as long as the one before.
std::int64_t last_duration(const std::vector<PacketTime>& sorted, std::int64_t PacketTime::*time,
                           const AVStream& stream) {
  const std::size_t count = sorted.size();
  if (count > 1) {
    const std::int64_t before = sorted[count - 1].*time - sorted[count - 2].*time;
    const bool is_told = std::abs(sorted[count - 2].duration - before) <= 1;
    return is_told && sorted.back().duration > 0 ? sorted.back().duration : before;
  }
  if (sorted.back().duration > 0 || rate_of(stream).num == 0) return sorted.back().duration;
  return std::llround(1 / (rate_of(stream).value() * av_q2d(stream.time_base)));
}

VideoFile::Scan sort_times(std::vector<PacketTime> packets, std::int64_t PacketTime::*time,
                           const AVStream& stream) {
  std::ranges::stable_sort(packets, {}, time);
  const std::int64_t origin = packets.front().*time;
  Timeline timeline{.tick = {stream.time_base.num, stream.time_base.den}};
  for (const PacketTime& packet : packets) timeline.frames.push_back({packet.*time - origin, packet.is_key});
  const std::int64_t lasts = last_duration(packets, time, stream);
  timeline.end = timeline.frames.back().at + std::max<std::int64_t>(lasts, 1);
  const bool is_shown_time = time == &PacketTime::pts;
  return {.timeline = std::move(timeline), .origin = is_shown_time ? std::optional(origin) : std::nullopt};
}

// Matroska's statistics say when a stream ends: "00:00:03.000000000".  Without them, what is missing at the
// end of a file cannot be told from a shorter video.
std::optional<double> stated_end(const AVStream& stream) {
  const AVDictionaryEntry* stated = av_dict_get(stream.metadata, "DURATION", nullptr, 0);
  int hours = 0, minutes = 0;
  double seconds = 0;
  if (stated == nullptr || std::sscanf(stated->value, "%d:%d:%lf", &hours, &minutes, &seconds) != 3)
    return std::nullopt;
  return 3600.0 * hours + 60.0 * minutes + seconds;
}

Error cut_short(const fs::path& path, std::size_t read) {
  return Error(
      ErrorKind::corrupt_file,
      fmt::format("{}: the video is cut short or damaged behind its first {} frames", path.string(), read),
      "copy or download it again");
}

}  // namespace

VideoFile::VideoFile(const fs::path& path) : path_(path), demuxer_(open_video(path)) {
  refuse_other_demuxers(*demuxer_, path);
  stream_ = &find_video(*demuxer_, path);
  for (AVStream* stream : std::span(demuxer_->streams, demuxer_->nb_streams))
    if (stream != stream_) stream->discard = AVDISCARD_ALL;
  const AVCodecParameters& codec = *stream_->codecpar;
  if (codec.width <= 0 || codec.height <= 0) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: the video has no frames", path.string()),
                "check that it plays elsewhere");
  }
  const VideoGeometry size = geometry();
  if (std::max({size.stored_width, size.stored_height, size.square_width}) > kMostSide) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: has {} x {} pixels, more than {} a side", path.string(), size.square_width,
                            size.stored_height, kMostSide),
                "scale it down first");
  }
  colour_meaning(*tagged_frame(codec), Untagged::video, path);
}

VideoGeometry VideoFile::geometry() const {
  const AVCodecParameters& codec = *stream_->codecpar;
  const AVRational aspect = av_guess_sample_aspect_ratio(demuxer_.get(), stream_, nullptr);
  const double wide = aspect.num > 0 && aspect.den > 0 ? av_q2d(aspect) : 1;
  return {.stored_width = codec.width,
          .stored_height = codec.height,
          .square_width =
              static_cast<int>(std::clamp<long long>(std::llround(codec.width * wide), 1, kMostSide + 1)),
          .orientation = orientation_of(*stream_)};
}

VideoFile::Scan VideoFile::scan() {
  std::vector<PacketTime> packets;
  std::int64_t read = 0;
  PacketPtr packet = new_packet();
  int result = 0;
  for (; (result = av_read_frame(demuxer_.get(), packet.get())) >= 0; av_packet_unref(packet.get())) {
    if (packet->stream_index != stream_->index) continue;
    ++read;
    if ((packet->flags & AV_PKT_FLAG_CORRUPT) != 0) throw cut_short(path_, packets.size());
    if ((packet->flags & AV_PKT_FLAG_DISCARD) != 0) continue;  // outside what the file shows
    packets.push_back({packet->pts, packet->dts, packet->duration, (packet->flags & AV_PKT_FLAG_KEY) != 0});
  }
  const bool has_index = std::string_view(demuxer_->iformat->name).starts_with("mov");
  if (result != AVERROR_EOF || (has_index && read < avformat_index_get_entries_count(stream_)))
    throw cut_short(path_, packets.size());
  if (packets.empty()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: the video has no frames", path_.string()),
                "check that it plays elsewhere");
  }
  constexpr double kSlack = 0.5;  // seconds
  const PacketTime& last = *std::ranges::max_element(packets, {}, &PacketTime::pts);
  const double end = static_cast<double>(last.pts) * av_q2d(stream_->time_base);
  if (last.pts != AV_NOPTS_VALUE && end + kSlack < stated_end(*stream_).value_or(0))
    throw cut_short(path_, packets.size());
  const std::string_view name = demuxer_->iformat->name;
  if (packets.size() == 1 && (name == "gif" || name == "apng")) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is a still picture ({}), not a video", path_.string(), name),
                "give it with --image");
  }
  if (!lack(packets, &PacketTime::pts)) return sort_times(std::move(packets), &PacketTime::pts, *stream_);
  if (!lack(packets, &PacketTime::dts)) return sort_times(std::move(packets), &PacketTime::dts, *stream_);
  return count_times(packets, *stream_);
}

ReadableVideo VideoFile::describe(const Scan& scan, Rational rate) const {
  const Timeline& timeline = scan.timeline;
  const VideoGeometry size = geometry();
  ReadableVideo video{
      .width = size.width(),
      .height = size.height(),
      .seconds = timeline.seconds(),
      .rate = mean_rate(timeline, rate_of(*stream_)),
      .variable_rate = has_variable_rate(timeline),
      .frames = sampled_frames(timeline, rate),
      .has_sound = std::ranges::any_of(
          std::span(demuxer_->streams, demuxer_->nb_streams),
          [](const AVStream* stream) { return stream->codecpar->codec_type == AVMEDIA_TYPE_AUDIO; }),
      .conversions = {}};
  if (!is_one_to_one(timeline, rate)) {
    video.conversions.push_back(fmt::format("{}{} to {} frames a second",
                                            video.variable_rate ? "varying, mean " : "",
                                            to_string(video.rate), to_string(rate)));
  }
  if (size.square_width != size.stored_width) {
    video.conversions.push_back(fmt::format("{}x{} oblong pixels to {}x{} square ones", size.stored_width,
                                            size.stored_height, size.square_width, size.stored_height));
  }
  if (size.orientation != Orientation{})
    video.conversions.push_back(sluice::media::describe(size.orientation));
  const std::string told = colour_meaning(*tagged_frame(*stream_->codecpar), Untagged::video, path_).told;
  if (!told.empty()) video.conversions.push_back(told);
  if (stream_->codecpar->field_order > AV_FIELD_PROGRESSIVE)
    video.conversions.push_back("interlaced: both fields as one frame");
  return video;
}

ReadableVideo probe_video(const fs::path& path, Rational rate) {
  VideoFile file(path);
  return file.describe(file.scan(), rate);
}

}  // namespace sluice::media
