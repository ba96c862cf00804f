#include "media/stranger.h"

#include <sluice/error.h>
#include "base/file.h"
#include "bytes/format/impostor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sluice::media {

void refuse_stranger(const std::filesystem::path& path, const Wanted& wanted) {
  File file = File::open(path);
  std::array<std::byte, bytes::kImpostorBytes> buffer;
  const auto first = std::span(buffer).first(std::min<Bytes>(file.identity().size, buffer.size()));
  read_exact(file, first, 0, "the first bytes");
  const auto impostor = bytes::recognize_impostor(first);
  if (!impostor || bytes::is_video(path)) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: is {}, not {}", path.string(), impostor->what, wanted.what),
              std::string(wanted.remedy));
}

}  // namespace sluice::media
