#include "bytes/format/shard_index.h"

#include "base/file.h"
#include "base/text.h"
#include "bytes/format/header.h"
#include "bytes/format/impostor.h"
#include "bytes/format/json_events.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::bytes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kBadIndex =
    "fetch the index again, or write it anew with the tool that made the shards";

// "model.safetensors.index.json"; a variant may stand before ".json" or before ".safetensors".
bool is_index_name(std::string_view name) {
  return name.ends_with(".json") && name.find(".safetensors.index.") != std::string_view::npos;
}

class IndexBuilder final : public JsonEvents {
 public:
  explicit IndexBuilder(std::string_view file) : file_(file) {}

  void begin(Nest nest) override {
    ++depth_;
    if (depth_ == 1 && nest != Nest::object) fail("is no JSON object");
    if (in_map_ && (depth_ > 2 || nest != Nest::object)) fail_value();
  }
  void end() override {
    --depth_;
    if (depth_ == 1) in_map_ = false;
  }
  void key(std::string& name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(had_map_, true)) fail("has weight_map twice");
    } else if (in_map_) {
      if (name.find('\0') != std::string::npos)
        fail(fmt::format("name {} holds a NUL character", in_quotes(name)));
      tensor_ = std::move(name);
    }
  }
  void text(std::string& value) override {
    if (!in_map_) return;
    if (depth_ != 2) fail_value();
    check_shard_name(value);
    std::size_t next = numbers_.size();
    index_.entries.push_back({tensor_, numbers_.try_emplace(value, next).first->second});
  }
  void integer(std::uint64_t) override {
    if (in_map_) fail_value();
  }
  void other(std::string_view) override {
    if (in_map_) fail_value();
  }

  ShardIndex take() {
    if (!had_map_) fail("has no weight_map");
    if (index_.entries.empty()) fail("names no tensor");
    // Shards were numbered as met; from here on in the order of their names.
    std::vector<std::size_t> sorted(numbers_.size());
    for (const auto& [name, number] : numbers_) {
      sorted[number] = index_.shards.size();
      index_.shards.push_back(name);
    }
    for (auto& entry : index_.entries) entry.shard = sorted[entry.shard];
    std::ranges::sort(index_.entries, {}, &ShardIndex::Entry::tensor);
    auto twin = std::ranges::adjacent_find(index_.entries, {}, &ShardIndex::Entry::tensor);
    if (twin != index_.entries.end()) fail(fmt::format("names tensor {} twice", in_quotes(twin->tensor)));
    return std::move(index_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorKind::corrupt_file, fmt::format("{}: index {}", file_, what), std::string(kBadIndex));
  }
  [[noreturn]] void fail_value() const {
    if (depth_ <= 1 || tensor_.empty()) fail("has a weight_map that is no object of file names");
    fail(fmt::format("names no file for tensor {}", in_quotes(tensor_)));
  }
  void check_shard_name(std::string_view name) const {
    // Whatever is not printable could only do harm in messages; no file system has names beyond 255 bytes.
    bool plain = !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
                 name.size() <= 255 && printable(name) == name;
    if (plain) return;
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: index names the file {} for tensor {}, which is no plain file name", file_,
                            in_quotes(name), in_quotes(tensor_)),
                "shards must lie beside their index: do not trust this file");
  }

  std::string_view file_;
  ShardIndex index_;
  std::map<std::string, std::size_t> numbers_;
  std::string tensor_;
  int depth_ = 0;
  bool in_map_ = false;
  bool had_map_ = false;
};

std::string hint_for_folder(const fs::path& folder) {
  if (fs::exists(folder / "model_index.json")) {
    return "this is a diffusers folder: its components, such as transformer/, hold the weights";
  }
  return "give a .safetensors file, a *.safetensors.index.json or a folder that holds one";
}

Error several(const fs::path& folder, std::string_view what, std::vector<std::string> names) {
  std::ranges::sort(names);
  return Error(
      ErrorKind::bad_input,
      fmt::format("{}: folder holds {} {}: {}", folder.string(), names.size(), what, list_first(names, 8)),
      what == "indexes" ? "give the one you mean"
                        : "give the file you mean, or fetch the index.json of a set of shards");
}

CheckpointFiles locate_in_folder(const fs::path& folder) {
  std::vector<std::string> indexes, files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.starts_with('.') || it->is_directory(error)) continue;
    if (is_index_name(name)) indexes.push_back(name);
    if (name.ends_with(".safetensors")) files.push_back(name);
  }
  if (error) {
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot list the folder: {}", folder.string(), system_reason(error.value())),
                system_remedy(error.value()));
  }
  if (indexes.size() > 1) throw several(folder, "indexes", indexes);
  if (indexes.size() == 1) return {folder / indexes[0], {}};
  if (files.size() > 1) throw several(folder, "safetensors files and no index", files);
  if (files.empty()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: folder holds no safetensors file", folder.string()),
                hint_for_folder(folder));
  }
  return {std::nullopt, folder / files[0]};
}

}  // namespace

CheckpointFiles locate_checkpoint(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return locate_in_folder(path);
  if (is_index_name(path.filename().string())) return {path, {}};
  return {std::nullopt, path};
}

ShardIndex parse_shard_index(std::string_view json, std::string_view file) {
  IndexBuilder builder(file);
  parse_json(json, fmt::format("{}: index", file), builder);
  return builder.take();
}

ShardIndex read_shard_index(const fs::path& path) {
  refuse_impostor(path, "an index of shards");
  return parse_shard_index(read_text(path, kMaxHeaderBytes), path.string());
}

ShardIndex needed_shards(const ShardIndex& index, const std::function<bool(std::string_view)>& wanted) {
  std::vector<bool> needed(index.shards.size(), false);
  for (const ShardIndex::Entry& entry : index.entries) {
    if (!needed[entry.shard]) needed[entry.shard] = wanted(entry.tensor);
  }
  ShardIndex part;
  std::vector<std::size_t> numbers(index.shards.size());
  for (std::size_t i = 0; i < index.shards.size(); ++i) {
    if (!needed[i]) continue;
    numbers[i] = part.shards.size();
    part.shards.push_back(index.shards[i]);
  }
  for (const ShardIndex::Entry& entry : index.entries) {
    if (needed[entry.shard]) part.entries.push_back({entry.tensor, numbers[entry.shard]});
  }
  return part;
}

}  // namespace sluice::bytes
