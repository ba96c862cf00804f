#include "media/encoders.h"

#include <sluice/error.h>
#include "media/libav.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavcodec/version.h>
}

#include <array>
#include <vector>

namespace sluice::media {

void check_encoders(std::span<const std::string> names) {
  redirect_libav_log();
  std::vector<std::string> missing;
  for (const std::string& name : names) {
    if (avcodec_find_encoder_by_name(name.c_str()) == nullptr) missing.push_back(name);
  }
  if (missing.empty()) return;
  throw Error(ErrorKind::io,
              fmt::format("libavcodec {}.{} has no encoder {}", avcodec_version() >> 16,
                          (avcodec_version() >> 8) & 0xff, fmt::join(missing, ", ")),
              "install an FFmpeg with libx264 and aac (Debian and Ubuntu: apt install libavcodec-extra)");
}

void check_encoders() {
  check_encoders(std::array{kVideoEncoder, kSoundEncoder});
}

const AVCodec& find_encoder(const std::string& name) {
  check_encoders(std::span(&name, 1));
  return *avcodec_find_encoder_by_name(name.c_str());
}

}  // namespace sluice::media
