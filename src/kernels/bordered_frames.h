#pragma once
// Frames on their way into a convolution (frame_conv.h): with a border around each picture, and normed where
// the network says so, in one pass.
//
//   normed:  y = n / (1 + e^-n),  n = x / sqrt(mean over channels of x² + eps)
//
// f32 inside, rounded once.  Every position by itself, so that nothing depends on what is beside it.

#include "kernels/lanes.h"

#include <cstdint>
#include <span>

namespace sluice::kernels {

enum class Border { zeros, reflect };  // reflect: without repeating the edge; pictures larger than the border

struct BorderedPicture {
  std::int64_t height = 0, width = 0, channels = 0;
  // On either side of a row, and above and below the picture: of zeros, rows are left out
  // (BorderRows::zeros).
  std::int64_t columns = 1, rows = 1;
  Border border = Border::zeros;
  double eps = 0;  // of the norm

  std::int64_t rows_above() const { return border == Border::reflect ? rows : 0; }
};

enum class Entry { as_is, normed };

template <typename T>  // float or Bf16
struct EnteringFrame {
  const T* from = nullptr;  // [height][width][channels]
  Entry entry = Entry::as_is;
};

// Values of one frame of `to`: [height + 2 rows_above()][width + 2 columns][position_stride<T>(channels)].
template <typename T>
std::int64_t bordered_values(const BorderedPicture& picture);

// Frame by frame to `to`.  Channels are followed by zeros up to a whole word; what else lies between
// positions is left as it is.
template <typename T>
void enter_frames(const BorderedPicture& picture, std::span<const EnteringFrame<T>> frames, T* to);

// The other way: the picture without its border, [height][width][channels].
template <typename T>
void leave_frame(const BorderedPicture& picture, const T* bordered, T* to);

namespace reference {
// The plain twin.
template <typename T>
void enter_frames(const BorderedPicture& picture, std::span<const EnteringFrame<T>> frames, T* to);
}  // namespace reference

}  // namespace sluice::kernels
