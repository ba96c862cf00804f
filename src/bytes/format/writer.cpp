#include "bytes/format/writer.h"

#include "base/file.h"
#include "base/temporary_file.h"
#include "base/text.h"
#include "bytes/format/dtype.h"
#include "bytes/format/header.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <set>
#include <utility>

namespace sluice::bytes {
namespace {

// The size of the widest vector registers and of a cache line: mapped tensors of multiples of it stay
// aligned.
constexpr Bytes kDataAlignment = 64;

Error refused(const std::filesystem::path& path, std::string_view what) {
  return Error(ErrorKind::usage, fmt::format("{}: cannot write: {}", path.string(), what),
               "a safetensors file needs unique UTF-8 names and sizes that 64 bits can count");
}

// Throws nlohmann's type_error if the text is not UTF-8.
std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump();
}

std::string entry(const TensorSpec& tensor, Bytes begin, Bytes end) {
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_string(tensor.name),
                     dtype_name(tensor.dtype), fmt::join(tensor.shape, ","), begin, end);
}

std::string metadata_entry(const std::map<std::string, std::string>& metadata) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : metadata) pairs.push_back(json_string(key) + ":" + json_string(value));
  return fmt::format(R"("__metadata__":{{{}}})", fmt::join(pairs, ","));
}

struct Table {
  std::string header;  // with its length, padded
  Bytes data_size = 0;
};

void check_name(const std::filesystem::path& path, const std::string& name,
                std::set<std::string_view>& seen) {
  if (name == "__metadata__" || name.find('\0') != std::string::npos) {
    throw refused(path, fmt::format("{} cannot be a tensor's name", in_quotes(name)));
  }
  if (!seen.insert(name).second)
    throw refused(path, fmt::format("tensor {} is given twice", in_quotes(name)));
}

Table make_table(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                 const std::map<std::string, std::string>& metadata) try {
  Table table;
  std::vector<std::string> entries;
  std::set<std::string_view> seen;
  if (!metadata.empty()) entries.push_back(metadata_entry(metadata));
  for (const TensorSpec& tensor : tensors) {
    check_name(path, tensor.name, seen);
    auto size = checked_size(tensor.dtype, tensor.shape);
    Bytes end = 0;
    if (!size || __builtin_add_overflow(table.data_size, *size, &end)) {
      throw refused(
          path, fmt::format("tensor {} of {} {} has no size that 64 bits can count in whole bytes",
                            in_quotes(tensor.name), dtype_name(tensor.dtype), format_shape(tensor.shape)));
    }
    entries.push_back(entry(tensor, table.data_size, end));
    table.data_size = end;
  }
  std::string json = fmt::format("{{{}}}", fmt::join(entries, ","));
  json.resize((json.size() + 8 + kDataAlignment - 1) / kDataAlignment * kDataAlignment - 8, ' ');
  if (json.size() > kMaxHeaderBytes) {
    throw refused(path, fmt::format("the header would have {} bytes, above the format's limit of {}",
                                    json.size(), kMaxHeaderBytes));
  }
  for (int shift = 0; shift < 64; shift += 8) table.header.push_back(static_cast<char>(json.size() >> shift));
  table.header += json;
  return table;
} catch (const nlohmann::json::exception&) {
  throw refused(path, "a name or the metadata is not UTF-8");
}

}  // namespace

std::string safetensors_header(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  return make_table(path, tensors, metadata).header;
}

struct SafetensorsWriter::State {
  TemporaryFile temporary;
  File file;
  Bytes remaining = 0;  // of the data
};

SafetensorsWriter::SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> tensors,
                                     const std::map<std::string, std::string>& metadata) {
  Table table = make_table(path, tensors, metadata);
  TemporaryFile temporary(std::move(path));
  File file = File::open_for_writing(temporary.path());
  write_all(file, std::as_bytes(std::span(table.header)), temporary.target());
  state_ = std::make_unique<State>(State{std::move(temporary), std::move(file), table.data_size});
}

SafetensorsWriter::~SafetensorsWriter() = default;
SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  const std::filesystem::path& target = state_->temporary.target();
  if (bytes.size() > state_->remaining) {
    throw Error(ErrorKind::internal, fmt::format("{}: {} bytes more than its table has were written",
                                                 target.string(), bytes.size() - state_->remaining));
  }
  write_all(state_->file, bytes, target);
  state_->remaining -= bytes.size();
}

void SafetensorsWriter::finish(Flush flush) {
  if (state_->remaining != 0) {
    throw Error(ErrorKind::internal, fmt::format("{}: {} bytes of its table were not written",
                                                 state_->temporary.target().string(), state_->remaining));
  }
  state_->temporary.commit(flush);
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorSpec> specs;
  for (const TensorData& tensor : tensors) specs.push_back(tensor.spec);
  SafetensorsWriter writer(path, std::move(specs), metadata);
  for (const TensorData& tensor : tensors) {
    if (tensor.bytes.size() != checked_size(tensor.spec.dtype, tensor.spec.shape)) {
      throw Error(ErrorKind::internal,
                  fmt::format("{}: tensor {} of {} {} comes with {} bytes", path.string(),
                              in_quotes(tensor.spec.name), dtype_name(tensor.spec.dtype),
                              format_shape(tensor.spec.shape), tensor.bytes.size()));
    }
    writer.append(tensor.bytes);
  }
  writer.finish();
}

}  // namespace sluice::bytes
