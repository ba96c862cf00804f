#include "kernels/bordered_frames.h"

#include "kernels/frame_conv.h"
#include "kernels/lanes_exp.h"
#include "kernels/plain_value.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>

namespace sluice::kernels {
namespace {

template <typename T>
struct Row {                // neighbouring positions
  const T* from = nullptr;  // [position][channels]
  T* to = nullptr;          // [position][stride]
  std::int64_t positions = 0, channels = 0, stride = 0;
  float eps = 0;
};

// silu(x · factor), without a large exponent for either sign.
SLUICE_INLINE void norm_silu(Lanes& x, const Lanes& factor) {
  const Lanes zero = {};
  x *= factor;
  Lanes e = x > zero ? -x : x;
  exp_in_place(e);
  x = (x > zero ? x : x * e) / (1.0F + e);
}

template <typename T>
SLUICE_INLINE void norm_position(const T* from, std::int64_t channels, float eps, T* to) {
  const std::int64_t whole = channels / kLanes * kLanes, rest = channels - whole;
  Lanes x, squares = {}, others = {};
  std::int64_t c = 0;
  for (; c + 2 * kLanes <= whole; c += 2 * kLanes) {  // two sums, so that none waits for itself
    load(from + c, x);
    squares += x * x;
    load(from + c + kLanes, x);
    others += x * x;
  }
  if (c < whole) load(from + c, x), squares += x * x;
  if (rest) load_part(from + whole, rest, x), others += x * x;
  squares += others;
  const float mean = sum_of(squares) / static_cast<float>(channels);
  const Lanes factor = Lanes{} + 1.0F / std::sqrt(mean + eps);
  for (c = 0; c < whole; c += kLanes) {
    load(from + c, x);
    norm_silu(x, factor);
    store(x, to + c);
  }
  if (rest == 0) return;
  load_part(from + whole, rest, x);
  norm_silu(x, factor);
  store_part(x, rest, to + whole);
}

template <typename T>
SLUICE_INLINE void norm_row(const Row<T>& row) {
  for (std::int64_t i = 0; i < row.positions; ++i)
    norm_position(row.from + i * row.channels, row.channels, row.eps, row.to + i * row.stride);
}

SLUICE_INLINE void norm_f32_body(const Row<float>& row) {
  norm_row(row);
}
SLUICE_INLINE void norm_bf16_body(const Row<Bf16>& row) {
  norm_row(row);
}
SLUICE_COMPILE(void, norm_f32, (const Row<float>& row), (row))
SLUICE_COMPILE(void, norm_bf16, (const Row<Bf16>& row), (row))

void norm(const Row<float>& row) {
  best_of(k_norm_f32)(row);
}
void norm(const Row<Bf16>& row) {
  best_of(k_norm_bf16)(row);
}

template <typename T>
void copy(const Row<T>& row) {
  for (std::int64_t i = 0; i < row.positions; ++i)
    std::copy_n(row.from + i * row.channels, row.channels, row.to + i * row.stride);
}

// Of an axis that is mirrored at its first and last place.
std::int64_t mirrored(std::int64_t index, std::int64_t size) {
  if (index < 0) return -index;
  return index < size ? index : 2 * (size - 1) - index;
}

template <typename T>
class Entrance {
 public:
  explicit Entrance(const BorderedPicture& picture)
      : picture_(picture), stride_(position_stride<T>(picture.channels)) {}

  std::int64_t rows() const { return picture_.height + 2 * picture_.rows_above(); }
  std::int64_t row_values() const { return (picture_.width + 2 * picture_.columns) * stride_; }
  std::int64_t source_row(std::int64_t row) const {
    return mirrored(row - picture_.rows_above(), picture_.height);
  }

  Row<T> row_of(const T* frame, std::int64_t row, T* to) const {
    return {.from = frame + source_row(row) * picture_.width * picture_.channels,
            .to = to + row * row_values() + picture_.columns * stride_,
            .positions = picture_.width,
            .channels = picture_.channels,
            .stride = stride_,
            .eps = static_cast<float>(picture_.eps)};
  }

  // Once the positions of the picture are there.
  void finish(const Row<T>& row) const {
    if (picture_.channels % kWordValues<T> != 0) {
      for (std::int64_t i = 0; i < row.positions; ++i) row.to[i * stride_ + row.channels] = T{};
    }
    const std::int64_t values = (row.channels + kWordValues<T> - 1) / kWordValues<T> * kWordValues<T>;
    for (std::int64_t i = 1; i <= picture_.columns; ++i) {
      for (const std::int64_t column : {-i, picture_.width - 1 + i}) {
        T* to = row.to + column * stride_;
        if (picture_.border == Border::zeros)
          std::fill_n(to, values, T{});
        else
          std::copy_n(row.to + mirrored(column, picture_.width) * stride_, values, to);
      }
    }
  }

 private:
  const BorderedPicture& picture_;
  std::int64_t stride_;
};

}  // namespace

template <typename T>
std::int64_t bordered_values(const BorderedPicture& picture) {
  const Entrance<T> entrance(picture);
  return entrance.rows() * entrance.row_values();
}

template <typename T>
void enter_frames(const BorderedPicture& picture, std::span<const EnteringFrame<T>> frames, T* to) {
  const Entrance<T> entrance(picture);
  const std::int64_t rows = entrance.rows(), frame_values = bordered_values<T>(picture);
  const auto count = static_cast<std::int64_t>(frames.size());
  at::parallel_for(0, count * rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const EnteringFrame<T>& frame = frames[static_cast<std::size_t>(i / rows)];
      const Row<T> row = entrance.row_of(frame.from, i % rows, to + i / rows * frame_values);
      frame.entry == Entry::normed ? norm(row) : copy(row);
      entrance.finish(row);
    }
  });
}

template <typename T>
void leave_frame(const BorderedPicture& picture, const T* bordered, T* to) {
  const std::int64_t stride = position_stride<T>(picture.channels), width = picture.width;
  const std::int64_t row_values = (width + 2 * picture.columns) * stride;
  at::parallel_for(0, picture.height, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const T* from = bordered + (row + picture.rows_above()) * row_values + picture.columns * stride;
      for (std::int64_t i = 0; i < width; ++i)
        std::copy_n(from + i * stride, picture.channels, to + (row * width + i) * picture.channels);
    }
  });
}

namespace reference {
namespace {

template <typename T>
float norm_factor(const BorderedPicture& picture, const T* position) {
  float squares = 0;
  for (std::int64_t c = 0; c < picture.channels; ++c)
    squares += plain_value(position[c]) * plain_value(position[c]);
  return 1 / std::sqrt(squares / static_cast<float>(picture.channels) + static_cast<float>(picture.eps));
}

template <typename T>
void enter_position(const BorderedPicture& picture, const EnteringFrame<T>& frame, std::int64_t row,
                    std::int64_t column, T* to) {
  const bool inside = row >= 0 && row < picture.height && column >= 0 && column < picture.width;
  std::fill_n(to, (picture.channels + kWordValues<T> - 1) / kWordValues<T> * kWordValues<T>, T{});
  if (!inside && picture.border == Border::zeros) return;
  const std::int64_t place = mirrored(row, picture.height) * picture.width + mirrored(column, picture.width);
  const T* from = frame.from + place * picture.channels;
  const float factor = norm_factor(picture, from);
  for (std::int64_t c = 0; c < picture.channels; ++c) {
    const float n = plain_value(from[c]) * factor;
    if (frame.entry == Entry::as_is)
      to[c] = from[c];
    else
      round_to(n / (1 + std::exp(-n)), to[c]);
  }
}

}  // namespace

template <typename T>
void enter_frames(const BorderedPicture& picture, std::span<const EnteringFrame<T>> frames, T* to) {
  const std::int64_t above = picture.rows_above();
  for (const EnteringFrame<T>& frame : frames) {
    for (std::int64_t row = -above; row < picture.height + above; ++row) {
      for (std::int64_t column = -picture.columns; column < picture.width + picture.columns; ++column) {
        enter_position(picture, frame, row, column, to);
        to += position_stride<T>(picture.channels);
      }
    }
  }
}

template void enter_frames(const BorderedPicture&, std::span<const EnteringFrame<float>>, float*);
template void enter_frames(const BorderedPicture&, std::span<const EnteringFrame<Bf16>>, Bf16*);

}  // namespace reference

template std::int64_t bordered_values<float>(const BorderedPicture&);
template std::int64_t bordered_values<Bf16>(const BorderedPicture&);
template void enter_frames(const BorderedPicture&, std::span<const EnteringFrame<float>>, float*);
template void enter_frames(const BorderedPicture&, std::span<const EnteringFrame<Bf16>>, Bf16*);
template void leave_frame(const BorderedPicture&, const float*, float*);
template void leave_frame(const BorderedPicture&, const Bf16*, Bf16*);

}  // namespace sluice::kernels
