#include "base/disk_space.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice {

void require_disk_space(const std::filesystem::path& file, Bytes needed) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error || space.available >= needed) return;  // who cannot be asked will refuse the write
  throw Error(ErrorKind::does_not_fit,
              fmt::format("{}: not enough disk space: needs {}, {} free in {}", file.string(),
                          format_bytes(needed), format_bytes(space.available), folder.string()),
              "free space there, or name another folder");
}

}  // namespace sluice
