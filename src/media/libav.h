#pragma once
// What every user of libav in this folder needs: owners for its objects, its error codes as Error, and its
// log turned into ours.  libav's own headers stay out of here; include them where they are used.

#include <filesystem>
#include <memory>
#include <string>

struct AVCodec;
struct AVCodecContext;
struct AVDictionary;
struct AVFormatContext;
struct AVFrame;
struct AVPacket;

namespace sluice::media {

struct LibavFree {
  void operator()(AVCodecContext* codec) const;
  void operator()(AVFrame* frame) const;
  void operator()(AVPacket* packet) const;
};
using CodecPtr = std::unique_ptr<AVCodecContext, LibavFree>;
using FramePtr = std::unique_ptr<AVFrame, LibavFree>;
using PacketPtr = std::unique_ptr<AVPacket, LibavFree>;

CodecPtr new_codec(const AVCodec* codec);
FramePtr new_frame();
PacketPtr new_packet();

// Key-value pairs handed to libav.
class Dictionary {
 public:
  Dictionary() = default;
  ~Dictionary();
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;

  void set(const std::string& key, const std::string& value);
  AVDictionary** address() { return &entries_; }
  AVDictionary* release();  // to a libav struct that frees it

 private:
  AVDictionary* entries_ = nullptr;
};

// libav's warnings and errors become log_info lines, the rest is dropped.  Cheap; call it before using libav.
void redirect_libav_log();

// Error(io) "<what>: <libav's reason>" when `result` is negative, with the remedy for a full disk and
// the like.  Returns `result`.
int check_libav(int result, const std::string& what);

// The path as libav takes it: "file:" keeps a colon in a name from being read as a protocol.
std::string libav_url(const std::filesystem::path& path);

}  // namespace sluice::media
