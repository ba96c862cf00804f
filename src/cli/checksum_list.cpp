#include "cli/checksum_list.h"

#include "base/file.h"
#include "base/text.h"
#include "bytes/format/json_events.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr Bytes kMostListBytes = GiB(1);
constexpr std::size_t kNamesShown = 4;

}  // namespace

ChecksumList read_checksums(const std::filesystem::path& path) {
  const std::string text = read_text(path, kMostListBytes);
  bytes::check_json(text, path.string());  // depth, above all
  ChecksumList list;
  try {
    const json object = json::parse(text);
    for (const json& tensor : object.at("tensors"))
      list[tensor.at("name").get<std::string>()] = tensor.at("checksum").get<std::string>();
  } catch (const json::exception&) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: holds no list of checksums", path.string()),
                "make one with sluice verify --deep --json");
  }
  return list;
}

std::optional<Error> checksum_error(const Verified& verified, const ChecksumList& expected,
                                    const std::string& path) {
  ChecksumList left = expected;
  std::vector<std::string> differ, unexpected, missing;
  for (std::size_t i = 0; i < verified.audits.size(); ++i) {
    const bytes::Inventory::Part& part = verified.inventory.parts[i];
    for (std::size_t t = 0; t < part.checkpoint.tensors().size(); ++t) {
      const std::string name = full_tensor_name(part, part.checkpoint.tensors()[t]);
      auto found = left.find(name);
      if (found == left.end()) {
        unexpected.push_back(in_quotes(name));
        continue;
      }
      if (found->second != verified.audits[i].tensors[t].checksum) differ.push_back(in_quotes(name));
      left.erase(found);
    }
  }
  for (const auto& [name, checksum] : left) missing.push_back(in_quotes(name));
  if (differ.empty() && unexpected.empty() && missing.empty()) return std::nullopt;
  std::string message = fmt::format("{}: differs from the checksums", path);
  auto add = [&](std::string_view what, const std::vector<std::string>& names) {
    if (!names.empty())
      message += fmt::format("\n  {} {}: {}", names.size(), what, list_first(names, kNamesShown));
  };
  add("differ", differ);
  add("missing", missing);
  add("not in the list", unexpected);
  return Error(ErrorKind::mismatch, message,
               "fetch the file again, or compare with the list of this version");
}

}  // namespace sluice::cli
