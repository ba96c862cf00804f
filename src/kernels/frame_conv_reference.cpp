#include "kernels/frame_conv.h"

#include "kernels/plain_value.h"

namespace sluice::kernels::reference {
namespace {

template <typename T>
T value_of(const StoredValues& values, std::int64_t index) {
  T result;
  reference::widen_values(values, index, 1, &result);
  return result;
}

template <typename T>
float sum_at(const FrameConv<T>& conv, std::int64_t frame, std::int64_t row, std::int64_t column,
             std::int64_t out) {
  const FrameConvShape& shape = conv.shape;
  const FrameKernel& kernel = shape.kernel;
  const std::int64_t border = shape.rows == BorderRows::zeros ? kernel.h / 2 : 0;
  float sum = 0;
  for (std::int64_t t = 0; t < kernel.t; ++t) {
    for (std::int64_t h = 0; h < kernel.h; ++h) {
      const std::int64_t x_row = shape.step * row + h - border;
      if (x_row < 0 || x_row >= shape.x_height()) continue;
      for (std::int64_t w = 0; w < kernel.w; ++w) {
        const std::int64_t position =
            ((frame + t) * shape.x_height() + x_row) * shape.x_width() + shape.step * column + w;
        const std::int64_t tap = (t * kernel.h + h) * kernel.w + w;
        for (std::int64_t in = 0; in < shape.in; ++in)
          sum += plain_value(conv.x[position * position_stride<T>(shape.in) + in]) *
                 plain_value(value_of<T>(conv.weight, (out * shape.in + in) * kernel.taps() + tap));
      }
    }
  }
  return sum;
}

}  // namespace

template <typename T>
void convolve(const FrameConv<T>& conv) {
  const FrameConvShape& shape = conv.shape;
  for (std::int64_t frame = 0; frame < shape.frames; ++frame) {
    for (std::int64_t place = 0; place < shape.height * shape.width; ++place) {
      for (std::int64_t out = 0; out < shape.out; ++out) {
        float sum = sum_at(conv, frame, place / shape.width, place % shape.width, out);
        if (conv.bias.values) sum += value_of<float>(conv.bias, out);
        if (!conv.skip.empty())
          sum += plain_value(conv.skip[static_cast<std::size_t>(frame)][place * shape.out + out]);
        round_to(sum, conv.y[(frame * shape.height * shape.width + place) * shape.out + out]);
      }
    }
  }
}

template void convolve(const FrameConv<float>&);
template void convolve(const FrameConv<Bf16>&);

}  // namespace sluice::kernels::reference
