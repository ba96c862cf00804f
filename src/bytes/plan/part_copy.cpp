#include "bytes/plan/part_copy.h"

#include "bytes/plan/part_runs.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace sluice::bytes {
namespace {

// Elements that are cast or moved at once: small enough for the innermost cache.
constexpr std::size_t kBlockElements = 1024;
// Rows and columns of a tile that is turned: 64 cache lines of either side stay in the innermost cache.
constexpr std::size_t kTile = 64;

// A part as a loop nest over its box in row-major order: extents, and how far apart neighbours are in the
// target.  Elements below a byte are counted in bytes, which their runs fill.
struct Nest {
  struct Dim {
    std::size_t extent = 1, stride = 1;
  };
  std::vector<Dim> dims;  // outermost first; dimensions that continue each other in the target are one
  std::size_t base = 0;   // of the first element, in the target
  Dtype from = Dtype::F32, to = Dtype::F32;
  std::size_t from_size = 0, to_size = 0;  // bytes of an element
  const std::vector<Dtype>* casts = nullptr;
};

// Joins each dimension with the one behind it where stepping over the end of that one is a step of this.
std::vector<Nest::Dim> joined(const std::vector<Nest::Dim>& dims) {
  std::vector<Nest::Dim> joined;
  for (const Nest::Dim& dim : dims) {
    if (dim.extent == 1) continue;
    if (!joined.empty() && joined.back().stride == dim.extent * dim.stride) {
      joined.back() = {joined.back().extent * dim.extent, dim.stride};
    } else {
      joined.push_back(dim);
    }
  }
  if (joined.empty()) joined.push_back({1, 1});
  return joined;
}

void count_in_bytes(Nest& nest, unsigned bits) {
  nest.base = nest.base * bits / 8;
  for (Nest::Dim& dim : nest.dims) dim.stride = dim.stride * bits / 8;
  nest.dims.back() = {nest.dims.back().extent * bits / 8, 1};
  nest.from_size = nest.to_size = 1;
  nest.from = nest.to = Dtype::U8;
}

Nest nest_of(const Part& part, const TargetTensor& tensor) {
  Nest nest;
  const auto strides = strides_of(tensor.shape);
  for (std::size_t d = 0; d < part.box.size(); ++d) {
    nest.dims.push_back(
        {static_cast<std::size_t>(part.box[d].extent), static_cast<std::size_t>(strides[part.to_dim[d]])});
    nest.base += static_cast<std::size_t>(part.at[d] * strides[d]);
  }
  nest.dims = joined(nest.dims);
  nest.from = part.source.dtype;
  nest.to = tensor.dtype;
  nest.from_size = dtype_bits(nest.from) / 8;
  nest.to_size = dtype_bits(nest.to) / 8;
  nest.casts = &part.casts;
  if (dtype_bits(nest.from) % 8 != 0) count_in_bytes(nest, dtype_bits(nest.from));
  return nest;
}

// Through all dtypes on the way.
void cast_through(const Nest& nest, std::span<const std::byte> from, std::span<std::byte> to) {
  if (nest.casts->empty()) return cast_elements(nest.from, from, nest.to, to);
  std::array<std::byte, kBlockElements * 8> buffers[2];
  for (std::size_t done = 0, count; done < from.size() / nest.from_size; done += count) {
    count = std::min(from.size() / nest.from_size - done, kBlockElements);
    std::span<const std::byte> values = from.subspan(done * nest.from_size, count * nest.from_size);
    Dtype dtype = nest.from;
    std::size_t buffer = 0;
    for (Dtype next : *nest.casts) {
      const auto cast = std::span(buffers[buffer]).first(count * dtype_bits(next) / 8);
      cast_elements(dtype, values, next, cast);
      values = cast;
      dtype = next;
      buffer = 1 - buffer;
    }
    cast_elements(dtype, values, nest.to, to.subspan(done * nest.to_size, count * nest.to_size));
  }
}

// Calls visit with an unsigned integer of that many bytes.
template <typename Visit>
void with_size(std::size_t bytes, Visit visit) {
  switch (bytes) {
    case 1:
      return visit(std::uint8_t());
    case 2:
      return visit(std::uint16_t());
    case 4:
      return visit(std::uint32_t());
    default:
      return visit(std::uint64_t());
  }
}

// Elements side by side become elements `stride` apart.
void scatter(const Nest& nest, std::span<const std::byte> from, std::byte* to, std::size_t stride) {
  std::array<std::byte, kBlockElements * 8> block;
  const std::size_t all = from.size() / nest.from_size;
  for (std::size_t done = 0, count; done < all; done += count) {
    count = std::min(all - done, kBlockElements);
    cast_through(nest, from.subspan(done * nest.from_size, count * nest.from_size), block);
    with_size(nest.to_size, [&](auto element) {
      constexpr std::size_t kSize = sizeof(element);
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(to + (done + i) * stride * kSize, block.data() + i * kSize, kSize);
    });
  }
}

// Whole rows of `columns` elements side by side become columns: neighbours of a row are dims.back().stride
// apart, rows are neighbours.  Tile by tile, so that each cache line is written while it is near.
void turn(const Nest& nest, std::span<const std::byte> from, std::size_t columns, std::byte* to) {
  const std::size_t rows = from.size() / nest.from_size / columns, stride = nest.dims.back().stride;
  std::array<std::byte, kTile * kTile * 8> tile;
  for (std::size_t row = 0; row < rows; row += kTile) {
    const std::size_t high = std::min(kTile, rows - row);
    for (std::size_t column = 0; column < columns; column += kTile) {
      const std::size_t wide = std::min(kTile, columns - column);
      for (std::size_t r = 0; r < high; ++r) {
        cast_through(nest,
                     from.subspan(((row + r) * columns + column) * nest.from_size, wide * nest.from_size),
                     std::span(tile).subspan(r * wide * nest.to_size, wide * nest.to_size));
      }
      with_size(nest.to_size, [&](auto element) {
        constexpr std::size_t kSize = sizeof(element);
        for (std::size_t c = 0; c < wide; ++c) {
          std::byte* line = to + ((column + c) * stride + row) * kSize;
          for (std::size_t r = 0; r < high; ++r)
            std::memcpy(line + r * kSize, tile.data() + (r * wide + c) * kSize, kSize);
        }
      });
    }
  }
}

// Walks a piece of the box: a run of the innermost dimension at a time, or many of them where they can be
// turned together.
class Walk {
 public:
  Walk(const Nest& nest, std::size_t first_element) : nest_(nest), index_(nest.dims.size()) {
    for (std::size_t d = nest.dims.size(); d-- > 0;) {
      index_[d] = first_element % nest.dims[d].extent;
      first_element /= nest.dims[d].extent;
    }
  }

  void copy(std::span<const std::byte> piece, std::span<std::byte> target) {
    const Nest::Dim inner = nest_.dims.back();
    while (!piece.empty()) {
      const std::size_t left = piece.size() / nest_.from_size;
      std::byte* to = target.data() + place() * nest_.to_size;
      std::size_t rows = 0;
      if (inner.stride > 1 && index_.back() == 0) rows = rows_to_turn(left / inner.extent);
      const std::size_t count = rows > 0 ? rows * inner.extent : std::min(left, inner.extent - index_.back());
      const auto values = piece.first(count * nest_.from_size);
      if (rows > 0) {
        turn(nest_, values, inner.extent, to);
      } else if (inner.stride == 1) {
        cast_through(nest_, values, {to, count * nest_.to_size});
      } else {
        scatter(nest_, values, to, inner.stride);
      }
      advance(rows > 0 ? rows : 1, rows > 0 ? 0 : count);
      piece = piece.subspan(values.size());
    }
  }

 private:
  std::size_t place() const {
    std::size_t element = nest_.base;
    for (std::size_t d = 0; d < index_.size(); ++d) element += index_[d] * nest_.dims[d].stride;
    return element;
  }

  // How many of `whole` rows that follow lie side by side in the target.
  std::size_t rows_to_turn(std::size_t whole) const {
    if (nest_.dims.size() < 2) return 0;
    const Nest::Dim& outer = nest_.dims[nest_.dims.size() - 2];
    return outer.stride == 1 ? std::min(whole, outer.extent - index_[index_.size() - 2]) : 0;
  }

  // By that many elements of the innermost dimension, or by rows if there are none.
  void advance(std::size_t rows, std::size_t elements) {
    std::size_t d = index_.size() - 1;
    index_[d] += elements;
    if (elements == 0) index_[--d] += rows;
    for (; d > 0 && index_[d] == nest_.dims[d].extent; --d) {
      index_[d] = 0;
      ++index_[d - 1];
    }
  }

  const Nest& nest_;
  std::vector<std::size_t> index_;  // within the box, by dimension of the nest
};

}  // namespace

void copy_piece(const Part& part, const TargetTensor& tensor, Bytes part_offset,
                std::span<const std::byte> piece, std::span<std::byte> target) {
  if (piece.empty()) return;
  const Nest nest = nest_of(part, tensor);
  Walk(nest, part_offset / nest.from_size).copy(piece, target);
}

}  // namespace sluice::bytes
