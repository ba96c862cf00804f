#include "kernels/frame_conv.h"

#include "kernels/tasks.h"
#include "kernels/work_timer.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::kernels {
namespace {

// Positions that pass by a part of a panel, the taps of one frame, before the next part: enough that fetching
// the part does not count, few enough that their sums and inputs stay in the second cache.
constexpr std::int64_t kBlockPositions = 512;
// A panel is packed once for each part of the positions: parts below this would show it.
constexpr std::int64_t kPartPositions = 4096;
constexpr std::int64_t kTasksPerWorker = 4;  // so that all are done at about the same time
constexpr std::int64_t kLine = 64;           // bytes
// Positions whose place in y is asked for ahead: a panel's columns are a line or two of each, at a stride.
constexpr std::int64_t kAhead = 16;

std::int64_t round_up(std::int64_t x, std::int64_t unit) {
  return (x + unit - 1) / unit * unit;
}

template <typename T>
std::int64_t depth_of(std::int64_t in) {  // values of a tap
  return round_up(in, kWordValues<T>);
}

std::int64_t block_rows(const FrameConvShape& shape) {  // rows of pictures
  return std::max<std::int64_t>(kBlockPositions / shape.width, 1);
}

template <typename T>
TapWeights tap_weights(const FrameConv<T>& conv) {
  return {
      .values = conv.weight, .out = conv.shape.out, .in = conv.shape.in, .taps = conv.shape.kernel.taps()};
}

template <typename T>
struct Sums {                   // of one panel at neighbouring positions, on their way out
  const float* from = nullptr;  // [position][panel columns]
  std::int64_t panel = 0;       // columns
  std::int64_t columns = 0;     // that exist
  std::int64_t positions = 0;
  const float* bias = nullptr;  // [panel columns]
  const T* skip = nullptr;      // [position][stride]
  T* to = nullptr;              // [position][stride]
  std::int64_t stride = 0;
};

template <typename T>
SLUICE_INLINE void finish_any(const Sums<T>& x) {
  for (std::int64_t position = 0; position < x.positions; ++position) {
    const std::int64_t ahead = std::min(position + kAhead, x.positions - 1) * x.stride;
    __builtin_prefetch(x.to + ahead, 1);
    if (x.skip) __builtin_prefetch(x.skip + ahead);
    for (std::int64_t column = 0; column < x.columns; column += kLanes) {
      const std::int64_t count = std::min(kLanes, x.columns - column), at = position * x.stride + column;
      Lanes sum, bias, skip = {};
      load(x.from + position * x.panel + column, sum);
      load(x.bias + column, bias);
      sum += bias;
      if (x.skip) count == kLanes ? load(x.skip + at, skip) : load_part(x.skip + at, count, skip);
      if (x.skip) sum += skip;
      count == kLanes ? store(sum, x.to + at) : store_part(sum, count, x.to + at);
    }
  }
}

SLUICE_INLINE void finish_f32_body(const Sums<float>& x) {
  finish_any(x);
}
SLUICE_INLINE void finish_bf16_body(const Sums<Bf16>& x) {
  finish_any(x);
}
SLUICE_COMPILE(void, finish_f32, (const Sums<float>& x), (x))
SLUICE_COMPILE(void, finish_bf16, (const Sums<Bf16>& x), (x))

void finish(const Sums<float>& x) {
  best_of(k_finish_f32)(x);
}
void finish(const Sums<Bf16>& x) {
  best_of(k_finish_bf16)(x);
}

template <typename T>
class Convolution {
 public:
  Convolution(const FrameConv<T>& conv, std::byte* scratch)
      : conv_(conv),
        shape_(conv.shape),
        weights_(tap_weights(conv)),
        stride_(position_stride<T>(conv.shape.in)),
        depth_(depth_of<T>(conv.shape.in)),
        bias_(static_cast<std::size_t>(round_up(conv.shape.out, kPanelColumns)), 0.0F),
        scratch_(scratch) {
    for (std::int64_t h = 0; h < shape_.kernel.h; ++h) {
      for (std::int64_t w = 0; w < shape_.kernel.w; ++w)
        offsets_.push_back((h * shape_.x_width() + w) * stride_);
    }
    if (conv.bias.values) widen_values(conv.bias, 0, shape_.out, bias_.data());
  }

  void run() const {
    const std::int64_t workers = at::get_num_threads(), rows = shape_.frames * shape_.height;
    const std::int64_t panels = (shape_.out + kPanelColumns - 1) / kPanelColumns;
    const std::int64_t most = std::max<std::int64_t>(rows * shape_.width / kPartPositions, 1);
    const std::int64_t parts = std::clamp<std::int64_t>(kTasksPerWorker * workers / panels, 1, most);
    each_task(workers, panels * parts, [&](std::int64_t worker, std::int64_t task) {
      const std::int64_t part = task % parts;
      run_panel(worker, task / parts * kPanelColumns, rows * part / parts, rows * (part + 1) / parts);
      end_products();
    });
  }

 private:
  struct Panel {
    std::int64_t first = 0, columns = 0;  // output channels
    const T* b = nullptr;
    float* sums = nullptr;
  };

  void run_panel(std::int64_t worker, std::int64_t first, std::int64_t begin, std::int64_t end) const {
    std::byte* mine = scratch_ + worker * frame_conv_scratch<T>(shape_, 1);
    T* b = reinterpret_cast<T*>(mine);
    pack_tap_panel(weights_, first, {}, b);
    const Panel panel = {
        .first = first,
        .columns = panel_columns(first, shape_.out),
        .b = b,
        .sums = reinterpret_cast<float*>(
            mine + round_up(tap_panel_values<T>(weights_, 0) * static_cast<std::int64_t>(sizeof(T)), kLine))};
    const std::int64_t step = block_rows(shape_);
    for (std::int64_t row = begin; row < end; row += step) run_block(panel, row, std::min(row + step, end));
  }

  // Rows of pictures, counted over all frames.
  void run_block(const Panel& panel, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t t = 0; t < shape_.kernel.t; ++t) {
      for (std::int64_t row = begin; row < end; ++row)
        multiply_row(panel, t, row, panel.sums + (row - begin) * shape_.width * panel.columns);
    }
    for (std::int64_t row = begin; row < end; ++row)
      finish_row(panel, row, panel.sums + (row - begin) * shape_.width * panel.columns);
  }

  // The taps of one frame of x for a picture's row: (t, all of h that lies inside, all of w).
  void multiply_row(const Panel& panel, std::int64_t t, std::int64_t row, float* sums) const {
    const FrameKernel& kernel = shape_.kernel;
    const std::int64_t frame = row / shape_.height;
    const std::int64_t border = shape_.rows == BorderRows::zeros ? kernel.h / 2 : 0;
    const std::int64_t x_row = shape_.step * (row % shape_.height) - border;  // of the first tap
    const std::int64_t begin = std::max<std::int64_t>(-x_row, 0);
    const std::int64_t end = std::min(kernel.h, shape_.x_height() - x_row);
    multiply(MicroProduct<T>{.a = conv_.x + ((frame + t) * shape_.x_height() + x_row + begin) *
                                                shape_.x_width() * stride_,
                             .a_stride = shape_.step * stride_,
                             .segments = offsets_.data(),
                             .segment_count = (end - begin) * kernel.w,
                             .depth = depth_,
                             .b = panel.b + (t * kernel.h + begin) * kernel.w * depth_ * panel.columns,
                             .columns = panel.columns,
                             .c = sums,
                             .c_stride = panel.columns,
                             .add = t > 0},
             shape_.width);
  }

  void finish_row(const Panel& panel, std::int64_t row, const float* sums) const {
    const std::int64_t at = row * shape_.width * shape_.out + panel.first;
    const std::int64_t frame = row / shape_.height, above = row % shape_.height;
    finish(Sums<T>{.from = sums,
                   .panel = panel.columns,
                   .columns = std::min(panel.columns, shape_.out - panel.first),
                   .positions = shape_.width,
                   .bias = bias_.data() + panel.first,
                   .skip = conv_.skip.empty() ? nullptr
                                              : conv_.skip[static_cast<std::size_t>(frame)] +
                                                    above * shape_.width * shape_.out + panel.first,
                   .to = conv_.y + at,
                   .stride = shape_.out});
  }

  const FrameConv<T>& conv_;
  const FrameConvShape& shape_;
  TapWeights weights_;
  std::int64_t stride_, depth_;
  std::vector<std::int64_t> offsets_;  // of the taps of one frame
  std::vector<float> bias_;
  std::byte* scratch_;
};

}  // namespace

template <typename T>
std::int64_t position_stride(std::int64_t in) {
  constexpr std::int64_t kSpread = 1024;  // bytes; twelve rows at this stride take twelve ways of four sets
  const std::int64_t bytes = depth_of<T>(in) * static_cast<std::int64_t>(sizeof(T));
  return (bytes % kSpread == 0 ? bytes + kLine : bytes) / static_cast<std::int64_t>(sizeof(T));
}

template <typename T>
std::int64_t frame_conv_scratch(const FrameConvShape& shape, std::int64_t workers) {
  const std::int64_t columns = panel_columns(0, shape.out);
  const std::int64_t panel = shape.kernel.taps() * depth_of<T>(shape.in) * columns;
  const std::int64_t sums = block_rows(shape) * shape.width * columns;
  return workers * (round_up(panel * static_cast<std::int64_t>(sizeof(T)), kLine) +
                    round_up(sums * static_cast<std::int64_t>(sizeof(float)), kLine));
}

template <typename T>
void convolve(const FrameConv<T>& conv, std::byte* scratch) {
  const WorkTimer timer(Work::convolution);
  Convolution<T>(conv, scratch).run();
}

template std::int64_t position_stride<float>(std::int64_t);
template std::int64_t position_stride<Bf16>(std::int64_t);
template std::int64_t frame_conv_scratch<float>(const FrameConvShape&, std::int64_t);
template std::int64_t frame_conv_scratch<Bf16>(const FrameConvShape&, std::int64_t);
template void convolve(const FrameConv<float>&, std::byte*);
template void convolve(const FrameConv<Bf16>&, std::byte*);

}  // namespace sluice::kernels
