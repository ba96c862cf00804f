#pragma once
// A Checkpoint is a table before it is data: the headers of one or many safetensors files, checked against
// every rule of the format.  Opening reads headers only; tensor bytes are read on demand.  Immutable once
// open, so any thread may use it; copies share the open files.

#include <sluice/units.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// The element types safetensors 0.8 knows.
enum class Dtype {
  BOOL,
  F4,
  F6_E2M3,
  F6_E3M2,
  U8,
  I8,
  F8_E5M2,
  F8_E4M3,
  F8_E8M0,
  F8_E4M3FNUZ,
  F8_E5M2FNUZ,
  I16,
  U16,
  F16,
  BF16,
  I32,
  U32,
  F32,
  C64,
  F64,
  I64,
  U64,
};

std::string_view dtype_name(Dtype dtype);  // as written in a header: "BF16"
unsigned dtype_bits(Dtype dtype);          // bits of one element

struct TensorInfo {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::size_t shard = 0;            // index into Checkpoint::shards()
  Bytes offset = 0;                 // of the first byte in that shard's file
  Bytes size = 0;

  std::int64_t elements() const;
};

std::string format_shape(std::span<const std::int64_t> shape);  // "[4096, 128]", "[]"

struct Shard {
  std::filesystem::path path;
  Bytes file_size = 0;
  Bytes header_size = 0;                        // bytes before the data: 8 + N
  std::string header_checksum;                  // XXH3-128 of the first header_size bytes, hexadecimal
  std::map<std::string, std::string> metadata;  // "__metadata__"
};

class Checkpoint {
 public:
  // `path`: a .safetensors file, a *.safetensors.index.json, or a folder that holds either (an index wins;
  // without one, exactly one .safetensors file).  Headers only; refuses (Error corrupt_file or bad_input)
  // anything that breaks a rule of the format, and tells a Git LFS pointer, HTML page, GGUF, pickle, zip,
  // gzip or empty file by name. All damaged shards are listed in one message.
  static Checkpoint open(const std::filesystem::path& path);
  // As above, but of a set with an index only the shards that hold a wanted tensor are opened: the others
  // need not exist and are not in shards(), what they hold is not in tensors().  What else is in the opened
  // shards is.  See wanted_by() for filters.
  static Checkpoint open(const std::filesystem::path& path,
                         const std::function<bool(std::string_view tensor)>& wanted);

  const std::filesystem::path& path() const;            // as given to open()
  const std::vector<TensorInfo>& tensors() const;       // sorted by name
  const TensorInfo* find(std::string_view name) const;  // nullptr if there is none
  const std::vector<Shard>& shards() const;
  // The metadata of all shards, merged; of equal keys the first shard's.
  const std::map<std::string, std::string>& metadata() const;
  // What is odd but no error: tensors in shards that the index does not name, …  One line each.
  const std::vector<std::string>& warnings() const;

  // Fills `to` (exactly info.size bytes) with the tensor's bytes.  All of them or Error.
  void read(const TensorInfo& info, std::span<std::byte> to) const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
  friend struct CheckpointAccess;  // for the other files of the byte layer
};

}  // namespace sluice
