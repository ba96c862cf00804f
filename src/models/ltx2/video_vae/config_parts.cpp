#include "models/ltx2/video_vae/config_parts.h"

namespace sluice::ltx2::vae_config {

Error bad(const nn::ConfigReader& read, const std::string& what) {
  return Error(ErrorKind::bad_input, fmt::format("{}: {}", read.where(), what), "use the published config");
}

std::vector<bool> flags(const nn::ConfigReader& read, std::string_view key, std::size_t count) {
  if (read.has(key) && read.at(key).is_boolean()) return std::vector<bool>(count, read.required<bool>(key));
  return read.required<std::vector<bool>>(key);
}

SpatialPadding padding_mode(const nn::ConfigReader& read, std::string_view key) {
  auto mode = read.required<std::string>(key);
  if (mode == "zeros") return SpatialPadding::zeros;
  if (mode == "reflect") return SpatialPadding::reflect;
  throw read.unsupported(key);
}

void check_ratio(const nn::ConfigReader& read, std::string_view key, std::int64_t computed,
                 std::string_view half) {
  std::int64_t stated = read.value_or(key, computed);
  if (stated != computed)
    throw bad(read, fmt::format("'{}' is {}, the {}'s blocks make {}", key, stated, half, computed));
}

}  // namespace sluice::ltx2::vae_config
