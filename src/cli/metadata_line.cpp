#include "cli/metadata_line.h"

#include "base/text.h"

#include <fmt/format.h>

namespace sluice::cli {

std::string metadata_line(std::string_view key, std::string_view value) {
  constexpr std::size_t kShown = 160;
  if (value.size() <= kShown) return fmt::format("  {}: {}\n", printable(key), printable(value));
  std::size_t cut = kShown;  // between characters
  while (cut > 0 && (static_cast<unsigned char>(value[cut]) & 0xc0) == 0x80) --cut;
  return fmt::format("  {}: {}… ({} bytes, all of it with --json)\n", printable(key),
                     printable(value.substr(0, cut)), value.size());
}

}  // namespace sluice::cli
