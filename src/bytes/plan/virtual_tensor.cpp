#include "bytes/plan/virtual_tensor.h"

#include "base/text.h"
#include "bytes/plan/part_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace sluice::bytes {
namespace {

// A tensor without elements keeps its first part alone.
void drop_empty_parts(VirtualTensor& tensor) {
  auto has_elements = [](const Part& part) { return part.elements() > 0; };
  if (std::ranges::all_of(tensor.parts, has_elements)) return;
  if (std::ranges::none_of(tensor.parts, has_elements)) {
    tensor.parts.erase(tensor.parts.begin() + 1, tensor.parts.end());
  } else {
    std::erase_if(tensor.parts, [&](const Part& part) { return !has_elements(part); });
  }
}

std::size_t source_dim(const Part& part, std::size_t dim) {
  return static_cast<std::size_t>(std::ranges::find(part.to_dim, dim) - part.to_dim.begin());
}

bool other_extents_agree(const VirtualTensor& a, const VirtualTensor& b, std::size_t dim) {
  if (a.shape.size() != b.shape.size()) return false;
  for (std::size_t d = 0; d < a.shape.size(); ++d) {
    if (d != dim && a.shape[d] != b.shape[d]) return false;
  }
  return true;
}

}  // namespace

std::int64_t Part::elements() const {
  std::int64_t product = 1;
  for (const Interval& interval : box) product *= interval.extent;
  return product;
}

VirtualTensor::VirtualTensor(const TensorInfo& whole)
    : name(whole.name), dtype(whole.dtype), shape(whole.shape), parts(1) {
  Part& part = parts.front();
  part.source = whole;
  part.at.resize(shape.size());
  part.to_dim.resize(shape.size());
  std::iota(part.to_dim.begin(), part.to_dim.end(), std::size_t{0});
  part.box.reserve(shape.size());
  for (std::int64_t extent : shape) part.box.push_back({0, extent});
}

std::string describe(const VirtualTensor& tensor) {
  return fmt::format("{} {}", in_quotes(tensor.name), format_shape(tensor.shape));
}

void slice(VirtualTensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t end) {
  for (Part& part : tensor.parts) {
    Interval& interval = part.box[source_dim(part, dim)];
    const std::int64_t from = std::clamp(begin - part.at[dim], std::int64_t{0}, interval.extent);
    const std::int64_t to = std::clamp(end - part.at[dim], from, interval.extent);
    interval = {interval.begin + from, to - from};
    part.at[dim] = std::max(part.at[dim] - begin, std::int64_t{0});
  }
  tensor.shape[dim] = end - begin;
  drop_empty_parts(tensor);
}

void transpose(VirtualTensor& tensor, std::size_t first, std::size_t second) {
  std::swap(tensor.shape[first], tensor.shape[second]);
  for (Part& part : tensor.parts) {
    std::swap(part.at[first], part.at[second]);
    std::swap(part.to_dim[source_dim(part, first)], part.to_dim[source_dim(part, second)]);
  }
}

void cast(VirtualTensor& tensor, Dtype to) {
  if (to == tensor.dtype) return;
  for (Part& part : tensor.parts) {
    if (!part.casts.empty() || part.source.dtype != tensor.dtype) part.casts.push_back(tensor.dtype);
  }
  tensor.dtype = to;
}

VirtualTensor concatenate(std::vector<VirtualTensor> tensors, std::size_t dim, std::string name) {
  VirtualTensor joined = std::move(tensors.front());
  joined.name = std::move(name);
  for (VirtualTensor& tensor : std::span(tensors).subspan(1)) {
    for (Part& part : tensor.parts) {
      part.at[dim] += joined.shape[dim];
      joined.parts.push_back(std::move(part));
    }
    joined.shape[dim] += tensor.shape[dim];
  }
  drop_empty_parts(joined);
  return joined;
}

std::string why_not_dimension(const VirtualTensor& tensor, std::size_t dim) {
  return dim < tensor.shape.size() ? std::string() : fmt::format("has no dimension {}", dim);
}

std::string why_not_slice(const VirtualTensor& tensor, std::size_t dim, std::int64_t begin,
                          std::int64_t end) {
  if (dim >= tensor.shape.size()) return why_not_dimension(tensor, dim);
  if (0 <= begin && begin <= end && end <= tensor.shape[dim]) return {};
  return fmt::format("has no {} to {} in dimension {}", begin, end, dim);
}

std::string why_not_concatenate(std::span<const VirtualTensor* const> tensors, std::size_t dim) {
  const VirtualTensor& first = *tensors.front();
  if (dim >= first.shape.size()) return why_not_dimension(first, dim);
  std::int64_t extent = 0;
  for (const VirtualTensor* tensor : tensors) {
    if (tensor->dtype != first.dtype) {
      return fmt::format("is {}, but {} is {}", dtype_name(first.dtype), describe(*tensor),
                         dtype_name(tensor->dtype));
    }
    if (!other_extents_agree(first, *tensor, dim))
      return fmt::format("does not fit {} along dimension {}", describe(*tensor), dim);
    if (__builtin_add_overflow(extent, tensor->shape[dim], &extent)) return "becomes too large";
  }
  return {};
}

std::string why_not_whole_bytes(const VirtualTensor& tensor) {
  if (dtype_bits(tensor.dtype) % 8 == 0) return {};
  for (const Part& part : tensor.parts) {
    if (!std::ranges::is_sorted(part.to_dim))
      return fmt::format("is {}: elements smaller than a byte cannot be transposed",
                         dtype_name(tensor.dtype));
    if (!runs_are_whole_bytes(part, tensor.shape))
      return fmt::format("is {}: a cut falls inside a byte", dtype_name(tensor.dtype));
  }
  return {};
}

}  // namespace sluice::bytes
