#pragma once
// A media file opened for reading, and the decoder of one of its streams.  Errors name the file.

#include "media/libav.h"

#include <filesystem>
#include <memory>

struct AVStream;

namespace sluice::media {

struct CloseDemuxer {
  void operator()(AVFormatContext* demuxer) const;
};
using DemuxerPtr = std::unique_ptr<AVFormatContext, CloseDemuxer>;

// Error(bad_input): missing, a folder, or no media file.  Streams are those that the header names.
DemuxerPtr open_media(const std::filesystem::path& path);

// The same, with streams described from their first packets.
DemuxerPtr open_media_with_streams(const std::filesystem::path& path);

// Ready for packets of `stream`.  Error(bad_input) where libav has no decoder for it, or not for its
// settings.
CodecPtr open_decoder(const AVStream& stream, const std::filesystem::path& path);

}  // namespace sluice::media
