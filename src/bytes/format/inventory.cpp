#include "bytes/format/inventory.h"

#include "base/file.h"
#include "base/text.h"
#include "bytes/format/gathered_errors.h"
#include "bytes/format/json_events.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <ostream>

namespace sluice::bytes {
namespace {

namespace fs = std::filesystem;

// Names of files need not be UTF-8; what is not becomes U+FFFD.
std::string json_string(std::string_view text) {
  return escape_controls(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// Writes items with what belongs between them.
class Separator {
 public:
  Separator(std::ostream& out, std::string_view indent) : out_(out), indent_(indent) {}
  void next() {
    out_ << (first_ ? "\n" : ",\n") << indent_;
    first_ = false;
  }

 private:
  std::ostream& out_;
  std::string_view indent_;
  bool first_ = true;
};

std::string file_name(const Shard& shard) {
  return json_string(shard.path.filename().string());
}

void write_files(const Checkpoint& checkpoint, std::ostream& out) {
  out << "\"files\": [";
  Separator separator(out, "  ");
  for (const Shard& shard : checkpoint.shards()) {
    separator.next();
    out << fmt::format(R"({{"file": {}, "bytes": {}, "header_bytes": {}, "header_checksum": "{}"}})",
                       file_name(shard), shard.file_size, shard.header_size, shard.header_checksum);
  }
  out << "],\n";
}

void write_metadata(const Checkpoint& checkpoint, std::ostream& out) {
  out << "\"metadata\": {";
  Separator separator(out, "  ");
  for (const auto& [key, value] : checkpoint.metadata()) {
    separator.next();
    out << json_string(key) << ": "
        << (is_json_container(value) ? escape_controls(value) : json_string(value));
  }
  out << "},\n";
  const auto version = checkpoint.metadata().find("model_version");
  out << "\"model_version\": "
      << (version == checkpoint.metadata().end() ? "null" : json_string(version->second)) << ",\n";
}

void write_warnings(const Checkpoint& checkpoint, std::ostream& out) {
  out << "\"warnings\": [";
  Separator separator(out, "  ");
  for (const std::string& warning : checkpoint.warnings()) {
    separator.next();
    out << json_string(warning);
  }
  out << "],\n";
}

void write_tensors(const Checkpoint& checkpoint, std::ostream& out) {
  std::vector<std::string> files;
  for (const Shard& shard : checkpoint.shards()) files.push_back(file_name(shard));
  out << "\"tensors\": [";
  Separator separator(out, "  ");
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    separator.next();
    out << fmt::format(R"({{"name": {}, "dtype": "{}", "shape": {}, "bytes": {}, "file": {}}})",
                       json_string(tensor.name), dtype_name(tensor.dtype), format_shape(tensor.shape),
                       tensor.size, files[tensor.shard]);
  }
  out << "]";
}

void write_checkpoint(const Checkpoint& checkpoint, std::ostream& out) {
  out << "{\"kind\": \"checkpoint\",\n";
  write_files(checkpoint, out);
  write_metadata(checkpoint, out);
  write_warnings(checkpoint, out);
  write_tensors(checkpoint, out);
  out << "}";
}

bool has_weights(const fs::path& folder) {
  return std::ranges::any_of(fs::directory_iterator(folder),
                             [](const auto& file) { return file.path().extension() == ".safetensors"; });
}

// Of a diffusers folder, by name.
std::vector<fs::path> folders_with_weights(const fs::path& path) {
  std::vector<fs::path> folders;
  try {
    for (const auto& entry : fs::directory_iterator(path))
      if (entry.is_directory() && has_weights(entry.path())) folders.push_back(entry.path());
  } catch (const fs::filesystem_error& error) {
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot list the folder: {}", error.path1().string(),
                            system_reason(error.code().value())),
                system_remedy(error.code().value()));
  }
  std::ranges::sort(folders);
  return folders;
}

}  // namespace

Inventory take_inventory(const fs::path& path) {
  Inventory inventory;
  std::error_code error;
  inventory.diffusers = fs::exists(path / "model_index.json", error);
  if (!inventory.diffusers) {
    inventory.parts.push_back({"", Checkpoint::open(path)});
    return inventory;
  }
  std::vector<Error> problems;
  const std::vector<fs::path> folders = folders_with_weights(path);
  for (const fs::path& folder : folders) {
    try {
      inventory.parts.push_back({folder.filename().string(), Checkpoint::open(folder)});
    } catch (const Error& problem) {
      problems.push_back(problem);
    }
  }
  throw_gathered(problems, fmt::format("{}: {} of {} components cannot be used", path.string(),
                                       problems.size(), folders.size()));
  return inventory;
}

void write_json(const Inventory& inventory, std::ostream& out) {
  if (!inventory.diffusers) {
    write_checkpoint(inventory.parts.front().checkpoint, out);
    return;
  }
  out << "{\"kind\": \"diffusers folder\",\n\"components\": {";
  Separator separator(out, "");
  for (const auto& [name, checkpoint] : inventory.parts) {
    separator.next();
    out << json_string(name) << ": ";
    write_checkpoint(checkpoint, out);
  }
  out << "}}";
}

}  // namespace sluice::bytes
