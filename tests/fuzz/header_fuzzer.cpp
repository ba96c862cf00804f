// Any bytes as a safetensors file: the whole way of opening one, without the file.
#include "bytes/format/dtype.h"
#include "bytes/format/header.h"
#include "bytes/format/impostor.h"
#include "bytes/format/json_events.h"
#include "bytes/format/shard.h"
#include "fuzz/check.h"

#include <algorithm>
#include <functional>
#include <span>

namespace sluice::fuzz {
namespace {

constexpr std::string_view kFile = "f.safetensors";

// A table that was accepted tiles the data, in the order of its names.
void check_table(const bytes::ShardTable& table, Bytes file_size) {
  require(std::ranges::adjacent_find(table.tensors, std::ranges::greater_equal{}, &TensorInfo::name) ==
              table.tensors.end(),
          "names are sorted and unique");
  Bytes sum = 0;
  for (const TensorInfo& tensor : table.tensors) {
    require(tensor.offset >= table.info.header_size && tensor.offset <= file_size &&
                tensor.size <= file_size - tensor.offset,
            "the tensor lies in the data");
    require(bytes::checked_size(tensor.dtype, tensor.shape) == tensor.size, "the size is that of the shape");
    sum += tensor.size;
  }
  require(sum == file_size - table.info.header_size, "the tensors are all of the data");
  for (const auto& [key, value] : table.info.metadata) bytes::is_json_container(value);
}

void refuse_or_check(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const Error& error) {
    check_refusal(error, kFile);
  }
}

void read_as_file(std::string_view image) {
  auto first = std::as_bytes(std::span(image)).first(std::min(image.size(), bytes::kImpostorBytes));
  const Bytes before_data = bytes::measure_header(first, image.size(), kFile);
  check_table(bytes::read_table(image.substr(0, before_data), image.size(), kFile), image.size());
}

// Everything behind the first eight bytes as the header of a file with as much data as its tensors want:
// length and size need not be guessed.
void read_as_header(std::string_view image) {
  if (image.size() < 8) return;
  Bytes file_size = image.size();
  for (const TensorInfo& tensor : bytes::parse_header(image.substr(8), kFile).tensors)
    if (__builtin_add_overflow(file_size, tensor.size, &file_size)) return;
  check_table(bytes::read_table(image, file_size, kFile), file_size);
}

}  // namespace
}  // namespace sluice::fuzz

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view image(data, size);
  sluice::fuzz::refuse_or_check([&] { sluice::fuzz::read_as_file(image); });
  sluice::fuzz::refuse_or_check([&] { sluice::fuzz::read_as_header(image); });
  return 0;
}
