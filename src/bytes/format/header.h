#pragma once
// The header of one safetensors file as a table: pure functions from text and sizes to tensors or an Error
// (corrupt_file) that names the file, the tensor, the numbers and the remedy.

#include <sluice/checkpoint.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::bytes {

// The reference reader's limit; the published LTX-2.3 file has about 1 MB.
inline constexpr Bytes kMaxHeaderBytes = 100'000'000;

struct HeaderTable {
  std::vector<TensorInfo> tensors;  // sorted by name, names unique; offset counts from the start of the data
  std::map<std::string, std::string> metadata;
};

// `json`: the header's text, without its length.  Checks syntax, names, dtypes, shapes and that each tensor's
// range has its size.  `file` stands in messages.
HeaderTable parse_header(std::string_view json, std::string_view file);

// Checks that the tensors, in order of their place, fill the data from its start to the end of the file,
// without overlap or hole.  header_size: bytes before the data (8 + N).
void check_layout(const std::vector<TensorInfo>& tensors, Bytes header_size, Bytes file_size,
                  std::string_view file);

// A file of `file_size` bytes that would need `needed`: the one message for all truncated files.
[[noreturn]] void throw_truncated(std::string_view file, Bytes file_size, Bytes needed,
                                  std::string_view what);

}  // namespace sluice::bytes
