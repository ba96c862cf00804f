#include "models/ltx2/files/version.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

namespace sluice::ltx2 {
namespace {

// "2.3.1" -> {2, 3, 1}; components compare as numbers, so 2.10 is above 2.9.
std::vector<int> components(std::string_view version) {
  std::vector<int> numbers;
  const char* at = version.data();
  const char* end = at + version.size();
  while (at < end) {
    int number = 0;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) break;
    numbers.push_back(number);
    at = next == end ? next : next + 1;
  }
  return numbers;
}

std::string example_tensor(const Checkpoint& checkpoint, std::size_t shard) {
  const auto& tensors = checkpoint.tensors();
  auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& t) { return t.shard == shard; });
  return found == tensors.end() ? "no tensors"
                                : fmt::format("'{}' {}", found->name, format_shape(found->shape));
}

}  // namespace

std::string checked_version(const Checkpoint& checkpoint) {
  std::string version;
  std::size_t first = 0;
  const auto& shards = checkpoint.shards();
  for (std::size_t i = 0; i < shards.size(); ++i) {
    auto found = shards[i].metadata.find("model_version");
    if (found == shards[i].metadata.end()) continue;
    if (version.empty()) {
      version = found->second;
      first = i;
    } else if (found->second != version) {
      throw Error(ErrorKind::mismatch,
                  fmt::format("{} is of model version {} (with {}), {} of version {} (with {})",
                              shards[first].path.string(), version, example_tensor(checkpoint, first),
                              shards[i].path.string(), found->second, example_tensor(checkpoint, i)),
                  "take all shards from one release");
    }
  }
  const std::vector<int> oldest = {2, 3}, too_new = {2, 4};
  if (!version.empty() && (components(version) < oldest || components(version) >= too_new)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: the checkpoint is of model version {}, this program reads 2.3",
                            checkpoint.path().string(), version),
                "use an LTX-2.3 checkpoint");
  }
  return version;
}

bool same_release(std::string_view one, std::string_view other) {
  std::vector<int> a = components(one), b = components(other);
  a.resize(2);
  b.resize(2);
  return a == b;
}

}  // namespace sluice::ltx2
