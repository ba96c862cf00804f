#include "bytes/format/gathered_errors.h"

#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::bytes {
namespace {

constexpr std::size_t kShown = 8;

}  // namespace

void throw_gathered(const std::vector<Error>& errors, const std::string& summary) {
  if (errors.empty()) return;
  const Error& first = errors.front();
  if (errors.size() == 1) throw first;
  std::vector<std::string> lines;
  for (const Error& error : errors) lines.emplace_back(error.what());
  const bool same_kind =
      std::ranges::all_of(errors, [&](const Error& error) { return error.kind() == first.kind(); });
  throw Error(same_kind ? first.kind() : ErrorKind::corrupt_file,
              fmt::format("{}\n  {}", summary, list_first(lines, kShown, "\n  ")), first.hint());
}

}  // namespace sluice::bytes
