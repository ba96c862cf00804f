#include "decoded.h"

#include "media/libav.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace sluice::media {
namespace {

std::vector<std::uint8_t> copy_plane(const AVFrame& frame, int plane, int height, int width) {
  std::vector<std::uint8_t> copy;
  for (int row = 0; row < height; ++row) {
    const std::uint8_t* from = frame.data[plane] + std::ptrdiff_t{row} * frame.linesize[plane];
    copy.insert(copy.end(), from, from + width);
  }
  return copy;
}

void take(const AVFrame& frame, const AVStream& stream, DecodedMedia& media) {
  if (stream.codecpar->codec_type == AVMEDIA_TYPE_VIDEO) {
    media.frames.push_back({.seconds = static_cast<double>(frame.pts) * av_q2d(stream.time_base),
                            .height = frame.height,
                            .width = frame.width,
                            .y = copy_plane(frame, 0, frame.height, frame.width),
                            .cb = copy_plane(frame, 1, frame.height / 2, frame.width / 2),
                            .cr = copy_plane(frame, 2, frame.height / 2, frame.width / 2)});
    return;
  }
  const auto* left = reinterpret_cast<const float*>(frame.data[0]);
  const auto* right = reinterpret_cast<const float*>(frame.data[1]);
  media.left.insert(media.left.end(), left, left + frame.nb_samples);
  media.right.insert(media.right.end(), right, right + frame.nb_samples);
}

void decode_packet(AVCodecContext& codec, const AVPacket* packet, const AVStream& stream,
                   DecodedMedia& media) {
  check_libav(avcodec_send_packet(&codec, packet), "decode");
  FramePtr frame = new_frame();
  while (avcodec_receive_frame(&codec, frame.get()) >= 0) take(*frame, stream, media);
}

CodecPtr open_decoder(const AVStream& stream) {
  const AVCodec* decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  CodecPtr codec = new_codec(decoder);
  check_libav(avcodec_parameters_to_context(codec.get(), stream.codecpar), "decoder");
  codec->pkt_timebase = stream.time_base;
  check_libav(avcodec_open2(codec.get(), decoder, nullptr), "decoder");
  return codec;
}

}  // namespace

std::array<double, 3> DecodedFrame::mean_rgb(int top, int left, int side) const {
  std::array<double, 3> sum{};
  for (int row = top; row < top + side; ++row) {
    for (int column = left; column < left + side; ++column) {
      double luma = (y[row * width + column] - 16) * 255.0 / 219;
      double blue_difference = (cb[row / 2 * (width / 2) + column / 2] - 128) * 255.0 / 224;
      double red_difference = (cr[row / 2 * (width / 2) + column / 2] - 128) * 255.0 / 224;
      double red = luma + 1.5748 * red_difference;
      double blue = luma + 1.8556 * blue_difference;
      sum[0] += red;
      sum[1] += (luma - 0.2126 * red - 0.0722 * blue) / 0.7152;
      sum[2] += blue;
    }
  }
  for (double& channel : sum) channel /= side * side;
  return sum;
}

DecodedMedia decode(const std::filesystem::path& path) {
  redirect_libav_log();
  AVFormatContext* demuxer = nullptr;
  check_libav(avformat_open_input(&demuxer, libav_url(path).c_str(), nullptr, nullptr), "open");
  check_libav(avformat_find_stream_info(demuxer, nullptr), "open");
  std::map<int, CodecPtr> decoders;
  for (unsigned i = 0; i < demuxer->nb_streams; ++i)
    decoders[static_cast<int>(i)] = open_decoder(*demuxer->streams[i]);

  DecodedMedia media;
  PacketPtr packet = new_packet();
  while (av_read_frame(demuxer, packet.get()) >= 0) {
    int index = packet->stream_index;
    decode_packet(*decoders[index], packet.get(), *demuxer->streams[index], media);
    av_packet_unref(packet.get());
  }
  for (auto& [index, decoder] : decoders) decode_packet(*decoder, nullptr, *demuxer->streams[index], media);
  avformat_close_input(&demuxer);
  return media;
}

double widest_interleaving_gap(const std::filesystem::path& path) {
  AVFormatContext* demuxer = nullptr;
  check_libav(avformat_open_input(&demuxer, libav_url(path).c_str(), nullptr, nullptr), "open");
  std::map<std::int64_t, std::pair<int, double>> in_file_order;  // by position: stream and time
  PacketPtr packet = new_packet();
  while (av_read_frame(demuxer, packet.get()) >= 0) {
    double seconds =
        static_cast<double>(packet->dts) * av_q2d(demuxer->streams[packet->stream_index]->time_base);
    in_file_order[packet->pos] = {packet->stream_index, seconds};
    av_packet_unref(packet.get());
  }
  avformat_close_input(&demuxer);
  std::array<double, 2> reached{};
  double widest = 0;
  for (const auto& [position, packet_at] : in_file_order) {
    reached.at(packet_at.first) = packet_at.second;
    widest = std::max(widest, std::abs(reached[0] - reached[1]));
  }
  return widest;
}

}  // namespace sluice::media
