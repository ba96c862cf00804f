#include "nn/json_file.h"

#include "base/file.h"
#include "bytes/format/impostor.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::nn {
namespace {

constexpr Bytes kLargestConfig = MiB(16);

}  // namespace

nlohmann::json read_json_file(const std::filesystem::path& path) {
  bytes::refuse_impostor(path, "a JSON config");
  nlohmann::json json =
      nlohmann::json::parse(read_text(path, kLargestConfig), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: is no JSON object", path.string()),
                "the download is probably cut short: fetch the file again");
  }
  return json;
}

}  // namespace sluice::nn
