#include "media/probe.h"

#include "media/demuxer.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
}

#include <array>
#include <string_view>

namespace sluice::media {
namespace {

std::map<std::string, std::string> tags_of(const AVFormatContext& demuxer) {
  constexpr std::array<std::string_view, 3> kOfContainer = {"major_brand", "minor_version",
                                                            "compatible_brands"};
  std::map<std::string, std::string> tags;
  const AVDictionaryEntry* entry = nullptr;
  while ((entry = av_dict_get(demuxer.metadata, "", entry, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    tags[entry->key] = entry->value;
  for (std::string_view key : kOfContainer) tags.erase(std::string(key));
  return tags;
}

double seconds_of(std::int64_t ticks, AVRational base) {
  return ticks == AV_NOPTS_VALUE ? 0.0 : static_cast<double>(ticks) * av_q2d(base);
}

std::string name_or_unknown(const char* name) {
  return name == nullptr ? "unknown" : name;
}

// Where the container has no table of frames, its packets are counted.
void count_frames(AVFormatContext& demuxer, std::map<int, std::int64_t>& frames) {
  PacketPtr packet = new_packet();
  while (av_read_frame(&demuxer, packet.get()) >= 0) {
    ++frames[packet->stream_index];
    av_packet_unref(packet.get());
  }
}

VideoStream describe_video(const AVStream& stream) {
  const AVCodecParameters& codec = *stream.codecpar;
  return {.codec = avcodec_get_name(codec.codec_id),
          .width = codec.width,
          .height = codec.height,
          .frames = stream.nb_frames,
          .rate = {stream.avg_frame_rate.num, stream.avg_frame_rate.den},
          .start_seconds = seconds_of(stream.start_time, stream.time_base),
          .seconds = seconds_of(stream.duration, stream.time_base),
          .pixel_format = name_or_unknown(av_get_pix_fmt_name(static_cast<AVPixelFormat>(codec.format))),
          .matrix = name_or_unknown(av_color_space_name(codec.color_space)),
          .primaries = name_or_unknown(av_color_primaries_name(codec.color_primaries)),
          .transfer = name_or_unknown(av_color_transfer_name(codec.color_trc)),
          .range = name_or_unknown(av_color_range_name(codec.color_range))};
}

SoundStream describe_sound(const AVStream& stream) {
  const AVCodecParameters& codec = *stream.codecpar;
  return {.codec = avcodec_get_name(codec.codec_id),
          .sample_rate = codec.sample_rate,
          .channels = codec.ch_layout.nb_channels,
          .start_seconds = seconds_of(stream.start_time, stream.time_base),
          .seconds = seconds_of(stream.duration, stream.time_base)};
}

}  // namespace

MediaInfo probe(const std::filesystem::path& path) {
  DemuxerPtr demuxer = open_media_with_streams(path);
  MediaInfo info{.container = demuxer->iformat->name,
                 .seconds = seconds_of(demuxer->duration, AV_TIME_BASE_Q),
                 .video = {},
                 .sound = {},
                 .metadata = tags_of(*demuxer)};
  std::map<int, std::int64_t> counted;
  for (unsigned i = 0; i < demuxer->nb_streams; ++i) {
    const AVStream& stream = *demuxer->streams[i];
    if (stream.codecpar->codec_type == AVMEDIA_TYPE_AUDIO) info.sound.push_back(describe_sound(stream));
    if (stream.codecpar->codec_type != AVMEDIA_TYPE_VIDEO) continue;
    info.video.push_back(describe_video(stream));
    if (stream.nb_frames > 0) continue;
    if (counted.empty()) count_frames(*demuxer, counted);
    info.video.back().frames = counted[stream.index];
  }
  return info;
}

std::map<std::string, std::string> read_metadata(const std::filesystem::path& path) {
  return tags_of(*open_media(path));
}

}  // namespace sluice::media
