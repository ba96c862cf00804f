#include "built_videos.h"

#include "built_pictures.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
}

#include <cstring>

namespace sluice::media {
namespace {

CodecPtr open_encoder(const BuiltVideo& video, bool global_header) {
  const AVCodec* encoder = avcodec_find_encoder_by_name(video.encoder.c_str());
  CodecPtr codec = new_codec(encoder);
  codec->width = video.width;
  codec->height = video.height;
  codec->pix_fmt = av_get_pix_fmt(video.pixel_format);
  codec->time_base = {static_cast<int>(video.tick.num), static_cast<int>(video.tick.den)};
  codec->sample_aspect_ratio = {static_cast<int>(video.aspect.num), static_cast<int>(video.aspect.den)};
  codec->color_range = video.full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  if (!video.matrix.empty())
    codec->colorspace = static_cast<AVColorSpace>(av_color_space_from_name(video.matrix.c_str()));
  if (!video.transfer.empty())
    codec->color_trc =
        static_cast<AVColorTransferCharacteristic>(av_color_transfer_from_name(video.transfer.c_str()));
  if (global_header) codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  codec->thread_count = 1;
  Dictionary options;
  for (const auto& [key, value] : video.options) options.set(key, value);
  check_libav(avcodec_open2(codec.get(), encoder, options.address()), video.encoder);
  return codec;
}

void add_display_matrix(AVStream& stream, const std::array<std::int32_t, 9>& matrix) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
  AVPacketSideData* side =
      av_packet_side_data_new(&stream.codecpar->coded_side_data, &stream.codecpar->nb_coded_side_data,
                              AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix, 0);
  std::memcpy(side->data, matrix.data(), sizeof matrix);
#else
  std::memcpy(av_stream_new_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, sizeof matrix), matrix.data(),
              sizeof matrix);
#endif
}

}  // namespace

void paint_shade(AVFrame& frame, std::int64_t index) {
  const AVPixFmtDescriptor& format = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  for (int plane = 0; plane < 3 && frame.data[plane] != nullptr; ++plane) {
    const int rows = plane == 0 ? frame.height : AV_CEIL_RSHIFT(frame.height, format.log2_chroma_h);
    std::memset(frame.data[plane], plane == 0 ? shade(index) : 128,
                static_cast<std::size_t>(frame.linesize[plane]) * rows);
  }
}

std::vector<std::int64_t> steady_times(int count, int ticks) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < count; ++i) times.push_back(std::int64_t{i} * ticks);
  return times;
}

void write_video(const std::filesystem::path& path, const BuiltVideo& video) {
  AVFormatContext* muxer = nullptr;
  check_libav(avformat_alloc_output_context2(&muxer, nullptr, video.container.c_str(), nullptr),
              video.container);
  CodecPtr codec = open_encoder(video, (muxer->oformat->flags & AVFMT_GLOBALHEADER) != 0);
  AVStream* stream = avformat_new_stream(muxer, nullptr);
  check_libav(avcodec_parameters_from_context(stream->codecpar, codec.get()), "stream");
  stream->time_base = codec->time_base;
  if (video.states_rate) stream->avg_frame_rate = av_inv_q(codec->time_base);
  stream->sample_aspect_ratio = codec->sample_aspect_ratio;
  if (video.display_matrix) add_display_matrix(*stream, *video.display_matrix);
  check_libav(avio_open(&muxer->pb, libav_url(path).c_str(), AVIO_FLAG_WRITE), path.string());
  check_libav(avformat_write_header(muxer, nullptr), "header");

  PacketPtr packet = new_packet();
  const auto drain = [&] {
    while (avcodec_receive_packet(codec.get(), packet.get()) >= 0) {
      if (packet->duration == 0) packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      packet->stream_index = stream->index;
      check_libav(av_interleaved_write_frame(muxer, packet.get()), "packet");
    }
  };
  for (std::size_t index = 0; index < video.times.size(); ++index) {
    FramePtr frame = blank_frame(video.pixel_format, video.width, video.height);
    video.painter(*frame, static_cast<std::int64_t>(index));
    frame->pts = video.times[index];
    check_libav(avcodec_send_frame(codec.get(), frame.get()), video.encoder);
    drain();
  }
  check_libav(avcodec_send_frame(codec.get(), nullptr), video.encoder);
  drain();
  check_libav(av_write_trailer(muxer), "trailer");
  avio_closep(&muxer->pb);
  avformat_free_context(muxer);
}

}  // namespace sluice::media
