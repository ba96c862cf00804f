#include "bytes/plan/part_runs.h"

#include <algorithm>

namespace sluice::bytes {
namespace {

// The innermost dimensions of a box that lie in one run, up to the first that is cut: no two runs touch.
struct Run {
  std::size_t outer_dims = 0;  // the dimensions before them
  std::int64_t elements = 1;
};

// `whole(d)`: the box covers dimension d of everything that it is seen in.
template <typename Whole>
Run run_of(const Part& part, Whole whole) {
  Run run{part.box.size(), 1};
  while (run.outer_dims > 0) {
    const std::size_t dim = --run.outer_dims;
    run.elements *= part.box[dim].extent;
    if (!whole(dim)) break;
  }
  return run;
}

Run run_in_source(const Part& part) {
  return run_of(part, [&](std::size_t dim) { return part.box[dim].extent == part.source.shape[dim]; });
}

// The first element of the box, counted in its source.
std::int64_t first_element(const Part& part, std::span<const std::int64_t> strides) {
  std::int64_t element = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) element += part.box[d].begin * strides[d];
  return element;
}

bool is_whole_bytes(std::int64_t elements, unsigned bits) {
  return static_cast<Bytes>(elements) * bits % 8 == 0;
}

}  // namespace

std::vector<std::int64_t> strides_of(std::span<const std::int64_t> shape) {
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

bool in_target_order(const Part& part) {
  std::size_t next = 0;
  for (std::size_t d = 0; d < part.box.size(); ++d) {
    if (part.box[d].extent == 1) continue;
    if (part.to_dim[d] < next) return false;
    next = part.to_dim[d] + 1;
  }
  return true;
}

bool runs_are_whole_bytes(const Part& part, std::span<const std::int64_t> target_shape) {
  const unsigned bits = dtype_bits(part.source.dtype);
  const Run run = run_of(part, [&](std::size_t dim) {
    return part.box[dim].extent == part.source.shape[dim] && part.box[dim].extent == target_shape[dim];
  });
  if (part.elements() == 0) return true;
  if (!is_whole_bytes(run.elements, bits)) return false;
  const auto in_source = strides_of(part.source.shape), in_target = strides_of(target_shape);
  for (std::size_t d = 0; d < part.box.size(); ++d) {
    if (!is_whole_bytes(part.box[d].begin * in_source[d], bits)) return false;
    if (!is_whole_bytes(part.at[d] * in_target[d], bits)) return false;
    const bool steps = d < run.outer_dims && part.box[d].extent > 1;
    if (steps && !(is_whole_bytes(in_source[d], bits) && is_whole_bytes(in_target[d], bits))) return false;
  }
  return true;
}

std::int64_t count_runs(const Part& part) {
  const std::int64_t elements = part.elements();
  return elements == 0 ? 0 : elements / run_in_source(part).elements;
}

Bytes end_in_file(const Part& part) {
  if (part.elements() == 0) return part.source.offset;
  const auto strides = strides_of(part.source.shape);
  std::int64_t last = first_element(part, strides);
  for (std::size_t d = 0; d < strides.size(); ++d) last += (part.box[d].extent - 1) * strides[d];
  return part.source.offset + (static_cast<Bytes>(last + 1) * dtype_bits(part.source.dtype) + 7) / 8;
}

void append_ranges(const Part& part, std::size_t target, std::size_t number, std::vector<WantedRange>& to) {
  if (part.elements() == 0) return;
  const Run run = run_in_source(part);
  const auto strides = strides_of(part.source.shape);
  const Bytes bits = dtype_bits(part.source.dtype), size = static_cast<Bytes>(run.elements) * bits / 8;
  std::int64_t element = first_element(part, strides);
  std::vector<std::int64_t> index(run.outer_dims, 0);  // within the box
  for (Bytes done = 0;; done += size) {
    const Bytes offset = part.source.offset + static_cast<Bytes>(element) * bits / 8;
    to.push_back({part.source.shard, offset, size, target, number, done});
    std::size_t dim = run.outer_dims;
    while (dim > 0 && ++index[dim - 1] == part.box[dim - 1].extent) {
      --dim;
      element -= (index[dim] - 1) * strides[dim];
      index[dim] = 0;
    }
    if (dim == 0) return;
    element += strides[dim - 1];
  }
}

}  // namespace sluice::bytes
