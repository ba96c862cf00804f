#pragma once
// Builds safetensors files, right ones and wrong ones.  Nothing is checked: the header is put together as
// text, so that every rule of the format can be broken one at a time.
//
//   auto file = SyntheticFile().tensor("a", Dtype::BF16, {4}).tensor("b", Dtype::BF16, {4}).at_offset("b",
//   2).write(); Checkpoint::open(file.path());

#include "support/temporary_folder.h"

#include <sluice/checkpoint.h>

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

// A file in a folder of its own; both go with the last copy.
class WrittenFile {
 public:
  WrittenFile(std::string_view name, std::string_view content)
      : folder_(std::make_shared<TemporaryFolder>()), path_(*folder_ / name) {
    write_file(path_, content);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::shared_ptr<TemporaryFolder> folder_;
  std::filesystem::path path_;
};

class SyntheticFile {
 public:
  // Lies behind the tensors added before; its bytes are a pattern that differs from place to place.
  SyntheticFile& tensor(std::string name, Dtype dtype, const std::vector<std::int64_t>& shape) {
    Bytes size = dtype_bits(dtype) / 8;
    for (std::int64_t extent : shape) size *= static_cast<Bytes>(extent);
    Entry entry{std::move(name), {}};
    entry.fields["dtype"] = fmt::format("\"{}\"", dtype_name(dtype));
    entry.fields["shape"] = format_shape(shape);
    entry.fields["data_offsets"] = fmt::format("[{},{}]", data_.size(), data_.size() + size);
    entry.size = size;
    entries_.push_back(std::move(entry));
    for (Bytes i = 0; i < size; ++i)
      data_.push_back(static_cast<char>(data_.size() * 131 + data_.size() / 251));
    return *this;
  }

  // Moves what the header says about a tensor; the data stays.
  SyntheticFile& at_offset(std::string_view name, Bytes begin) {
    Entry& entry = find(name);
    entry.fields["data_offsets"] = fmt::format("[{},{}]", begin, begin + entry.size);
    return *this;
  }
  // Any JSON text as dtype, shape, data_offsets or another key; nothing removes the key.
  SyntheticFile& with_field(std::string_view name, const std::string& field, const std::string& json) {
    if (json.empty()) {
      find(name).fields.erase(field);
    } else {
      find(name).fields[field] = json;
    }
    return *this;
  }
  SyntheticFile& metadata(std::string_view key, std::string_view value) {
    metadata_.push_back(fmt::format("\"{}\":\"{}\"", key, value));
    return *this;
  }
  SyntheticFile& pad_header(std::size_t spaces) {
    padding_ = spaces;
    return *this;
  }
  // Replaces the whole text of the header.
  SyntheticFile& header(std::string text) {
    header_ = std::move(text);
    return *this;
  }
  // What the first eight bytes claim.
  SyntheticFile& header_length(std::uint64_t length) {
    length_ = length;
    return *this;
  }
  SyntheticFile& cut_last(std::size_t bytes) {
    cut_ = bytes;
    return *this;
  }
  SyntheticFile& append_data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  std::string header_text() const {
    if (header_) return *header_;
    std::vector<std::string> items;
    if (!metadata_.empty())
      items.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(metadata_, ",")));
    for (const Entry& entry : entries_) {
      std::vector<std::string> fields;
      for (const auto& [key, json] : entry.fields) fields.push_back(fmt::format("\"{}\":{}", key, json));
      items.push_back(fmt::format("\"{}\":{{{}}}", entry.name, fmt::join(fields, ",")));
    }
    return fmt::format("{{{}}}", fmt::join(items, ",")) + std::string(padding_, ' ');
  }
  const std::string& data() const { return data_; }
  std::string content() const {
    std::string text = header_text();
    std::uint64_t length = length_.value_or(text.size());
    std::string content;
    for (int shift = 0; shift < 64; shift += 8) content.push_back(static_cast<char>(length >> shift));
    content += text + data_;
    content.resize(content.size() - cut_);
    return content;
  }

  WrittenFile write(std::string_view name = "model.safetensors") const { return {name, content()}; }
  void write_to(const std::filesystem::path& path) const { write_file(path, content()); }

 private:
  struct Entry {
    std::string name;
    std::map<std::string, std::string> fields;
    Bytes size = 0;
  };

  // The last of that name: a duplicate can be changed.
  Entry& find(std::string_view name) {
    for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
      if (entry->name == name) return *entry;
    }
    throw std::out_of_range(std::string(name));
  }

  std::vector<Entry> entries_;
  std::vector<std::string> metadata_;
  std::string data_;
  std::size_t padding_ = 0;
  std::optional<std::string> header_;
  std::optional<std::uint64_t> length_;
  std::size_t cut_ = 0;
};

// {"weight_map": {tensor: file, …}}
inline std::string index_text(const std::vector<std::pair<std::string, std::string>>& weight_map) {
  std::vector<std::string> items;
  for (const auto& [tensor, file] : weight_map) items.push_back(fmt::format("\"{}\":\"{}\"", tensor, file));
  return fmt::format(R"({{"metadata":{{"total_size":0}},"weight_map":{{{}}}}})", fmt::join(items, ","));
}

}  // namespace sluice::test
