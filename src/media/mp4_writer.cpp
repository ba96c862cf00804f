#include "media/mp4_writer.h"

#include <sluice/error.h>
#include "base/temporary_file.h"
#include "media/libav.h"
#include "media/sound_encoder.h"
#include "media/sound_fit.h"
#include "media/sound_rate.h"
#include "media/video_encoder.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <limits>
#include <numeric>

namespace sluice::media {
namespace {

struct FreeMuxer {
  void operator()(AVFormatContext* muxer) const {
    avio_closep(&muxer->pb);
    avformat_free_context(muxer);
  }
};
using MuxerPtr = std::unique_ptr<AVFormatContext, FreeMuxer>;

MuxerPtr new_muxer(const std::string& url) {
  AVFormatContext* muxer = nullptr;
  check_libav(avformat_alloc_output_context2(&muxer, nullptr, "mp4", url.c_str()),
              "libavformat cannot write mp4");
  MuxerPtr owned(muxer);
  owned->flags |= AVFMT_FLAG_BITEXACT;  // no version of libav, no time of creation
  // Packets wait until each stream has one, however far apart: sound comes all at once before the picture.
  owned->max_interleave_delta = 0;
  return owned;
}

AVStream& add_stream(AVFormatContext& muxer, const AVCodecContext& codec) {
  AVStream* stream = avformat_new_stream(&muxer, nullptr);
  if (stream == nullptr) throw std::bad_alloc();
  check_libav(avcodec_parameters_from_context(stream->codecpar, &codec), "cannot allocate a stream");
  stream->time_base = codec.time_base;
  return *stream;
}

// Edit lists and the header's durations count in this scale: a common multiple, where it fits into the
// format's 32 bits, states the lengths of picture and sound exactly.
std::int64_t movie_timescale(Rational rate, const CodecPtr& sound) {
  std::int64_t common = std::lcm(rate.num, sound ? std::int64_t{sound->sample_rate} : std::int64_t{1});
  while (common < 1000) common *= 2;
  return common <= std::numeric_limits<std::int32_t>::max() ? common : rate.num;
}

VideoSettings video_settings(const Mp4Options& options) {
  return {.width = options.width,
          .height = options.height,
          .rate = options.rate,
          .crf = options.crf,
          .preset = options.preset,
          .threads = options.threads};
}

// As long as the picture, at its own rate where the format has it.
EncodedSound encode(const StereoWave& wave, const Mp4Options& options) {
  check_wave(wave);
  const int rate = mp4_sample_rate(wave.sample_rate);
  if (rate != wave.sample_rate) return encode(resample_sound(wave, rate).wave(), options);
  return encode_sound(wave, fit_sound(wave.samples(), rate, options.frames, options.rate).samples);
}

}  // namespace

class Mp4Writer::File {
 public:
  File(const std::filesystem::path& target, const Mp4Options& options)
      : target_(target), promised_(options.frames), video_(video_settings(options)) {
    if (options.frames <= 0)
      throw Error(ErrorKind::internal, fmt::format("an mp4 of {} frames", options.frames));
    EncodedSound sound;
    if (options.sound) sound = encode(*options.sound, options);
    temporary_.emplace(target);
    open(options, sound);
    for (const PacketPtr& packet : sound.packets) write(*packet, *sound.codec, *sound_stream_);
  }

  void add_frame(const RgbFrame& frame) {
    if (frames_ == promised_)
      throw Error(ErrorKind::internal,
                  fmt::format("{}: more frames than the {} promised", target_.string(), promised_));
    ++frames_;
    video_.encode(frame, [this](AVPacket& packet) { write(packet, video_.codec(), *video_stream_); });
  }

  void finish() {
    if (frames_ != promised_) {
      throw Error(ErrorKind::internal,
                  fmt::format("{}: {} frames came, {} were promised", target_.string(), frames_, promised_));
    }
    video_.flush([this](AVPacket& packet) { write(packet, video_.codec(), *video_stream_); });
    check(av_write_trailer(muxer_.get()));
    check(avio_closep(&muxer_->pb));
    muxer_.reset();
    temporary_->commit();
  }

 private:
  void open(const Mp4Options& options, const EncodedSound& sound) {
    std::string url = libav_url(temporary_->path());
    muxer_ = new_muxer(url);
    video_stream_ = &add_stream(*muxer_, video_.codec());
    video_stream_->avg_frame_rate = video_.codec().framerate;
    if (sound.codec) sound_stream_ = &add_stream(*muxer_, *sound.codec);
    Dictionary tags;
    for (const auto& [key, value] : options.metadata) tags.set(key, value);
    muxer_->metadata = tags.release();

    Dictionary settings;
    settings.set("movflags", "+faststart+use_metadata_tags");
    settings.set("movie_timescale", fmt::format("{}", movie_timescale(options.rate, sound.codec)));
    check(avio_open(&muxer_->pb, url.c_str(), AVIO_FLAG_WRITE));
    check(avformat_write_header(muxer_.get(), settings.address()));
  }

  void write(AVPacket& packet, const AVCodecContext& codec, const AVStream& stream) {
    av_packet_rescale_ts(&packet, codec.time_base, stream.time_base);
    packet.stream_index = stream.index;
    check(av_interleaved_write_frame(muxer_.get(), &packet));
  }

  // A full disk shows in the output's own state first; the muxer may say nothing until the end.
  void check(int result) const {
    if (muxer_->pb != nullptr && muxer_->pb->error < 0) result = muxer_->pb->error;
    check_libav(result, target_.string());
  }

  std::filesystem::path target_;
  std::int64_t promised_;
  std::int64_t frames_ = 0;
  VideoEncoder video_;
  std::optional<TemporaryFile> temporary_;  // destroyed after the muxer has closed it
  MuxerPtr muxer_;
  AVStream* video_stream_ = nullptr;  // both owned by the muxer
  AVStream* sound_stream_ = nullptr;
};

Mp4Writer::Mp4Writer(const std::filesystem::path& target, const Mp4Options& options)
    : file_(std::make_unique<File>(target, options)) {}

Mp4Writer::~Mp4Writer() = default;

void Mp4Writer::add_frame(const RgbFrame& frame) {
  file_->add_frame(frame);
}

void Mp4Writer::finish() {
  file_->finish();
}

}  // namespace sluice::media
