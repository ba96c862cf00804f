#pragma once
// Which parts of libav writing an mp4 needs, and whether the libav at hand has them.  FFmpeg is built in many
// variants (without x264 for its licence, for example), so generate asks before it works.

#include <span>
#include <string>

struct AVCodec;

namespace sluice::media {

// Error(io) that lists all missing encoders at once and says what to install.
void check_encoders();

// The same for encoders of the caller's choice.
void check_encoders(std::span<const std::string> names);

// The encoder of that name; the same Error when it is missing.
const AVCodec& find_encoder(const std::string& name);

inline const std::string kVideoEncoder = "libx264";
inline const std::string kSoundEncoder = "aac";

}  // namespace sluice::media
