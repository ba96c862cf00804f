#include "cli/verified.h"

#include "base/text.h"
#include "cli/figures.h"
#include "cli/tensor_line.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::cli {
namespace {

using nlohmann::json;
using Part = bytes::Inventory::Part;

constexpr std::size_t kNamesShown = 4;

// "3 NaN", "3 NaN and 1 infinite"
std::string describe(const bytes::NonFinite& found) {
  if (found.nan > 0 && found.infinite > 0)
    return fmt::format("{} NaN and {} infinite", found.nan, found.infinite);
  return found.nan > 0 ? fmt::format("{} NaN", found.nan) : fmt::format("{} infinite", found.infinite);
}

// visit(part, tensor, its audit) for every tensor that was read.
template <typename Visit>
void for_each_tensor(const Verified& verified, Visit visit) {
  for (std::size_t i = 0; i < verified.audits.size(); ++i) {
    const Part& part = verified.inventory.parts[i];
    const std::vector<TensorInfo>& tensors = part.checkpoint.tensors();
    for (std::size_t t = 0; t < tensors.size(); ++t) visit(part, tensors[t], verified.audits[i].tensors[t]);
  }
}

std::string file_name(const Part& part, const Shard& shard) {
  const std::string name = shard.path.filename().string();
  return part.name.empty() ? name : part.name + "/" + name;
}

// "" where the file holds bytes that belong to no tensor.
std::string file_checksum(const Verified& verified, std::size_t part, std::size_t shard) {
  return verified.audits.empty() ? "" : verified.audits[part].files[shard];
}

std::string tensor_lines(const Verified& verified) {
  std::string text;
  for_each_tensor(verified, [&](const Part& part, const TensorInfo& tensor, const bytes::TensorAudit& audit) {
    text += audit.checksum + "  " +
            tensor_line(tensor.dtype, tensor.shape, tensor.size, full_tensor_name(part, tensor));
    if (audit.non_finite.total() > 0) text += fmt::format("  holds {}\n", describe(audit.non_finite));
  });
  return text;
}

std::string file_lines(const Verified& verified) {
  std::string text;
  for (std::size_t i = 0; i < verified.inventory.parts.size(); ++i) {
    const Part& part = verified.inventory.parts[i];
    for (std::size_t s = 0; s < part.checkpoint.shards().size(); ++s) {
      const Shard& shard = part.checkpoint.shards()[s];
      const std::string checksum = file_checksum(verified, i, s);
      text += fmt::format("{}{}: {}, header {}\n", checksum.empty() ? "" : checksum + "  whole file ",
                          printable(file_name(part, shard)), format_bytes(shard.file_size),
                          shard.header_checksum);
    }
    for (const std::string& warning : part.checkpoint.warnings())
      text += fmt::format("warning: {}\n", printable(warning));
  }
  return text;
}

Bytes bytes_read(const Verified& verified) {
  Bytes total = 0;
  for (const bytes::Audit& audit : verified.audits) total += audit.report.bytes;
  return total;
}

std::string last_line(const Verified& verified) {
  Bytes size = 0;
  std::size_t tensors = 0, files = 0;
  for (const Part& part : verified.inventory.parts) {
    tensors += part.checkpoint.tensors().size();
    files += part.checkpoint.shards().size();
    for (const TensorInfo& tensor : part.checkpoint.tensors()) size += tensor.size;
  }
  std::string line = fmt::format("{}, {}, in {}: headers and sizes are right", counted(tensors, "tensor"),
                                 format_bytes(size), counted(files, "file"));
  if (!verified.audits.empty()) {
    line += fmt::format("; all of it read in {:.2f} s, {:.2f} GiB/s", verified.seconds,
                        gib_per_second(bytes_read(verified), verified.seconds));
  }
  return line + "\n";
}

json file_objects(const Verified& verified) {
  json files = json::array();
  for (std::size_t i = 0; i < verified.inventory.parts.size(); ++i) {
    const Part& part = verified.inventory.parts[i];
    for (std::size_t s = 0; s < part.checkpoint.shards().size(); ++s) {
      const Shard& shard = part.checkpoint.shards()[s];
      json file = {{"file", file_name(part, shard)},
                   {"bytes", shard.file_size},
                   {"header_checksum", shard.header_checksum}};
      const std::string checksum = file_checksum(verified, i, s);
      if (!checksum.empty()) file["checksum"] = checksum;
      files.push_back(std::move(file));
    }
  }
  return files;
}

}  // namespace

std::string full_tensor_name(const Part& part, const TensorInfo& tensor) {
  return part.name.empty() ? tensor.name : part.name + "/" + tensor.name;
}

std::string as_text(const Verified& verified) {
  return tensor_lines(verified) + file_lines(verified) + last_line(verified);
}

json as_json(const Verified& verified) {
  json object = {{"files", file_objects(verified)}, {"warnings", json::array()}};
  for (const Part& part : verified.inventory.parts)
    for (const std::string& warning : part.checkpoint.warnings()) object["warnings"].push_back(warning);
  if (verified.audits.empty()) return object;
  object["seconds"] = verified.seconds;
  object["bytes"] = bytes_read(verified);
  object["gib_per_second"] = gib_per_second(bytes_read(verified), verified.seconds);
  object["tensors"] = json::array();
  object["non_finite"] = json::array();
  for_each_tensor(verified, [&](const Part& part, const TensorInfo& tensor, const bytes::TensorAudit& audit) {
    const std::string name = full_tensor_name(part, tensor);
    object["tensors"].push_back({{"name", name},
                                 {"dtype", std::string(dtype_name(tensor.dtype))},
                                 {"shape", tensor.shape},
                                 {"checksum", audit.checksum},
                                 {"nan", audit.non_finite.nan},
                                 {"infinite", audit.non_finite.infinite}});
    if (audit.non_finite.total() > 0) object["non_finite"].push_back(name);
  });
  return object;
}

std::optional<Error> non_finite_error(const Verified& verified, const std::string& path) {
  std::vector<std::string> found;
  for_each_tensor(verified, [&](const Part& part, const TensorInfo& tensor, const bytes::TensorAudit& audit) {
    if (audit.non_finite.total() == 0) return;
    found.push_back(
        fmt::format("{} ({})", in_quotes(full_tensor_name(part, tensor)), describe(audit.non_finite)));
  });
  if (found.empty()) return std::nullopt;
  return Error(
      ErrorKind::corrupt_file,
      fmt::format("{}: {} {} values that are not finite: {}", path, found.size(),
                  found.size() == 1 ? "tensor holds" : "tensors hold", list_first(found, kNamesShown)),
      "compare checksums with another copy: if they agree, the weights were published like this");
}

}  // namespace sluice::cli
