#pragma once
// Writes one safetensors file as a stream: the table first, then each tensor's bytes in the table's order, so
// that a file of any size needs no more memory than the piece at hand.  The file appears under its name only
// when complete: it is written to a temporary name beside it, flushed to disk and renamed; destroying an
// unfinished writer removes it.

#include "base/temporary_file.h"

#include <sluice/checkpoint.h>

#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sluice::bytes {

struct TensorSpec {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
};

// All bytes before the data, for who writes these another way; rules and errors as below.  `path` stands in
// messages.
std::string safetensors_header(const std::filesystem::path& path, const std::vector<TensorSpec>& tensors,
                               const std::map<std::string, std::string>& metadata = {});

class SafetensorsWriter {
 public:
  // Tensors are laid out in the order given.  The header is padded with spaces so that data starts at a
  // multiple of 64. Error(usage) for duplicate or impossible names and for shapes without a size, Error(io)
  // when the folder cannot be written.  An existing file is replaced at finish(): check_target() asks first.
  SafetensorsWriter(std::filesystem::path path, std::vector<TensorSpec> tensors,
                    const std::map<std::string, std::string>& metadata = {});
  ~SafetensorsWriter();
  SafetensorsWriter(SafetensorsWriter&&) noexcept;

  // Appends the next bytes; pieces may end anywhere.  Error(io) names the path when the disk is full,
  // Error(internal) when there are more bytes than the table has.
  void append(std::span<const std::byte> bytes);

  // Every byte of the table must have been appended: Error(internal) otherwise.  fsync, rename.
  void finish(Flush flush = Flush::yes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A whole small file at once.
struct TensorData {
  TensorSpec spec;
  std::span<const std::byte> bytes;  // exactly what dtype and shape need
};
void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace sluice::bytes
