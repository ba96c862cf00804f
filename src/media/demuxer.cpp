#include "media/demuxer.h"

#include <sluice/error.h>
#include "base/file.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <array>

namespace sluice::media {
namespace {

// A file that libav cannot read is the user's, not the system's: bad_input.
void check_readable(int result, const std::filesystem::path& path) {
  if (result >= 0) return;
  std::array<char, AV_ERROR_MAX_STRING_SIZE> reason{};
  av_strerror(result, reason.data(), reason.size());
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: is no readable media file: {}", path.string(), reason.data()),
              "check that it is complete and plays elsewhere");
}

}  // namespace

void CloseDemuxer::operator()(AVFormatContext* demuxer) const {
  avformat_close_input(&demuxer);
}

DemuxerPtr open_media(const std::filesystem::path& path) {
  redirect_libav_log();
  File::open(path);  // its errors say what is wrong with the path
  AVFormatContext* demuxer = nullptr;
  check_readable(avformat_open_input(&demuxer, libav_url(path).c_str(), nullptr, nullptr), path);
  return DemuxerPtr(demuxer);
}

DemuxerPtr open_media_with_streams(const std::filesystem::path& path) {
  DemuxerPtr demuxer = open_media(path);
  check_readable(avformat_find_stream_info(demuxer.get(), nullptr), path);
  return demuxer;
}

CodecPtr open_decoder(const AVStream& stream, const std::filesystem::path& path) {
  const AVCodecParameters& parameters = *stream.codecpar;
  const AVCodec* decoder = avcodec_find_decoder(parameters.codec_id);
  auto refused = [&](const char* why) {
    return Error(ErrorKind::bad_input,
                 fmt::format("{}: {} {}", path.string(), avcodec_get_name(parameters.codec_id), why),
                 "convert the file to a common format");
  };
  if (decoder == nullptr) throw refused("is a codec that this libavcodec cannot decode");
  CodecPtr codec = new_codec(decoder);
  check_libav(avcodec_parameters_to_context(codec.get(), &parameters), path.string());
  codec->pkt_timebase = stream.time_base;  // decoders cut encoder delays by it
  if (avcodec_open2(codec.get(), decoder, nullptr) < 0) throw refused("has settings that cannot be decoded");
  return codec;
}

}  // namespace sluice::media
