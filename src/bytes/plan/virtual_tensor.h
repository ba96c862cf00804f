#pragma once
// A tensor that exists on paper: boxes of source tensors put together.  Slicing, joining, turning and casting
// it give another one of the same kind, so that any chain of rules is decided before a byte is read.
// The functions expect arguments that fit (why_not_… tells); a tensor without elements keeps one empty part,
// so that it still has a place in a file.

#include "bytes/plan/load_plan_state.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice::bytes {

struct VirtualTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::vector<Part> parts;
  std::optional<std::string>
      scale_name;  // set: it is quantized to F8_E4M3, and this is what its scale is called

  explicit VirtualTensor(const TensorInfo& whole);
};

std::string describe(const VirtualTensor& tensor);  // "'name' [2, 3]"

// Keeps [begin, end) along dim; 0 <= begin <= end <= extent.
void slice(VirtualTensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t end);

void transpose(VirtualTensor& tensor, std::size_t first, std::size_t second);

void cast(VirtualTensor& tensor, Dtype to);

// One tensor after the other along dim; at least one.
VirtualTensor concatenate(std::vector<VirtualTensor> tensors, std::size_t dim, std::string name);

// The reason, as the end of a sentence that begins with describe(): "has no dimension 2".  Empty: it can be.
std::string why_not_dimension(const VirtualTensor& tensor, std::size_t dim);
std::string why_not_slice(const VirtualTensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t end);
std::string why_not_concatenate(std::span<const VirtualTensor* const> tensors, std::size_t dim);
// Where elements are smaller than a byte: cuts inside of bytes, dimensions that changed places.
std::string why_not_whole_bytes(const VirtualTensor& tensor);

}  // namespace sluice::bytes
