#include "media/libav.h"

#include <sluice/error.h>
#include "base/file.h"
#include "base/log.h"

#include <fmt/format.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/log.h>
}

#include <array>
#include <cstdarg>
#include <mutex>
#include <new>
#include <utility>

namespace sluice::media {
namespace {

// libav hands a line over in pieces; each thread gathers its own until the newline.
void take_log(void* object, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_WARNING) return;
  thread_local std::string line;
  thread_local int print_prefix = 1;
  std::array<char, 1024> piece{};
  av_log_format_line2(object, level, format, arguments, piece.data(), static_cast<int>(piece.size()),
                      &print_prefix);
  line += piece.data();
  if (line.empty() || line.back() != '\n') return;
  line.pop_back();
  log_info("libav: " + std::exchange(line, {}));
}

template <typename T>
T* or_bad_alloc(T* made) {
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

void LibavFree::operator()(AVCodecContext* codec) const {
  avcodec_free_context(&codec);
}
void LibavFree::operator()(AVFrame* frame) const {
  av_frame_free(&frame);
}
void LibavFree::operator()(AVPacket* packet) const {
  av_packet_free(&packet);
}

CodecPtr new_codec(const AVCodec* codec) {
  return CodecPtr(or_bad_alloc(avcodec_alloc_context3(codec)));
}
FramePtr new_frame() {
  return FramePtr(or_bad_alloc(av_frame_alloc()));
}
PacketPtr new_packet() {
  return PacketPtr(or_bad_alloc(av_packet_alloc()));
}

Dictionary::~Dictionary() {
  av_dict_free(&entries_);
}

void Dictionary::set(const std::string& key, const std::string& value) {
  if (av_dict_set(&entries_, key.c_str(), value.c_str(), 0) < 0) throw std::bad_alloc();
}

AVDictionary* Dictionary::release() {
  return std::exchange(entries_, nullptr);
}

void redirect_libav_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_callback(take_log); });
}

int check_libav(int result, const std::string& what) {
  if (result >= 0) return result;
  const int error_number = AVUNERROR(result);
  constexpr int kGreatestErrno = 4095;  // the system's; libav's own codes are letters, far above
  if (result == AVERROR(ENOMEM)) throw std::bad_alloc();
  std::array<char, AV_ERROR_MAX_STRING_SIZE> own_words{};
  av_strerror(result, own_words.data(), own_words.size());
  throw Error(ErrorKind::io,
              fmt::format("{}: {}", what,
                          error_number <= kGreatestErrno ? system_reason(error_number) : own_words.data()),
              system_remedy(error_number));
}

std::string libav_url(const std::filesystem::path& path) {
  return "file:" + path.string();
}

}  // namespace sluice::media
