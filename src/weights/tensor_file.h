#pragma once
// Tensors from and to safetensors files: latents, traces, injected values.  For files that fit in memory.

#include "base/temporary_file.h"
#include "weights/named_tensors.h"

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::weights {

// Every tensor of the file, in the file's dtypes.  Errors of Checkpoint::open and load_tensors.
TensorMap read_tensors(const std::filesystem::path& path);

// CPU tensors of any dtype safetensors knows; the file appears when complete.
void write_tensors(const std::filesystem::path& path, const NamedTensors& tensors,
                   const std::map<std::string, std::string>& metadata = {}, Flush flush = Flush::yes);

// A file whose tensors come one by one, in an order and of shapes known beforehand.  All are f32.
class TensorStream {
 public:
  using Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

  TensorStream(const std::filesystem::path& path, Shapes shapes,
               const std::map<std::string, std::string>& metadata = {});
  ~TensorStream();
  TensorStream(TensorStream&&) noexcept;

  // The next tensor; Error(internal) unless name and shape are those announced.
  void append(std::string_view name, const at::Tensor& tensor);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::weights
