#include "bytes/format/shard.h"

#include "bytes/format/header.h"
#include "bytes/format/impostor.h"

#include <sluice/error.h>

#include <fmt/format.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>

namespace sluice::bytes {
namespace {

constexpr Bytes kLengthBytes = 8;

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

void refuse_what_is_no_safetensors(std::span<const std::byte> first, const std::string& file) {
  if (auto impostor = recognize_impostor(first)) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: is {}, not a safetensors file", file, impostor->what),
                std::string(impostor->remedy));
  }
  // A brace is also the first byte of many lengths; a text has no zeros behind it.
  bool text = first.size() < kLengthBytes || little_endian(first.first(kLengthBytes)) > kMaxHeaderBytes;
  if (text && first[0] == std::byte{'{'}) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: is a JSON text, not a safetensors file", file),
                "give the weights; an index is named *.safetensors.index.json");
  }
}

std::string checksum(std::string_view bytes) {
  XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace

Bytes measure_header(std::span<const std::byte> first, Bytes file_size, const std::filesystem::path& path) {
  const std::string file = path.string();
  refuse_what_is_no_safetensors(first, file);
  if (file_size < kLengthBytes) throw_truncated(file, file_size, kLengthBytes, "the header's length");
  Bytes length = little_endian(first.first(kLengthBytes));
  if (length > kMaxHeaderBytes) {
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: header length {} exceeds the format's limit of {} bytes", file, length,
                            kMaxHeaderBytes),
                "this is no safetensors file, or it is damaged: fetch it again");
  }
  if (length > file_size - kLengthBytes)
    throw_truncated(file, file_size, kLengthBytes + length, "its header alone");
  return kLengthBytes + length;
}

ShardTable read_table(std::string_view before_data, Bytes file_size, const std::filesystem::path& path) {
  const std::string file = path.string();
  HeaderTable table = parse_header(before_data.substr(kLengthBytes), file);
  check_layout(table.tensors, before_data.size(), file_size, file);
  for (TensorInfo& tensor : table.tensors) tensor.offset += before_data.size();
  return {{path, file_size, before_data.size(), checksum(before_data), std::move(table.metadata)},
          std::move(table.tensors)};
}

OpenShard open_shard(const std::filesystem::path& path) {
  File file = File::open(path);
  const FileIdentity identity = file.identity();

  std::array<std::byte, kImpostorBytes> buffer;
  auto first = std::span(buffer).first(std::min<Bytes>(identity.size, buffer.size()));
  read_exact(file, first, 0, "the first bytes");
  std::string before_data(measure_header(first, identity.size, path), '\0');
  read_exact(file, std::as_writable_bytes(std::span(before_data)), 0, "the header");
  ShardTable table = read_table(before_data, identity.size, path);
  return {std::move(file), identity, std::move(table.info), std::move(table.tensors)};
}

}  // namespace sluice::bytes
