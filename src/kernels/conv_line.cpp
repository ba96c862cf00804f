#include "kernels/conv_line.h"

#include "kernels/line_sums.h"
#include "kernels/scratch.h"
#include "kernels/tasks.h"
#include "kernels/work_timer.h"

#include <algorithm>

namespace sluice::kernels {
namespace {

// Of a panel, multiplied with all rows before the next part: with the rows that pass by it stays in the
// second cache.
constexpr std::int64_t kPartValues = (std::int64_t{384} << 10) / 4;
// Packed weights that stay in the second cache together, and a piece of the input beside them.
constexpr std::int64_t kFewWeights = (std::int64_t{768} << 10) / 4;
constexpr std::int64_t kPieceValues = (std::int64_t{192} << 10) / 4;
constexpr std::int64_t kSumRows = 48;      // whole tiles of the product
constexpr std::int64_t kTasksAWorker = 8;  // at least, where rows allow it
constexpr std::int64_t kFewestRows = 4 * kSumRows;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t panels_of(const LineConv& conv) {
  return ceil_div(conv.weights.out, kPanelColumns);
}

// Values of all panels; the last one may be narrower.
std::int64_t packed_values(const LineConv& conv) {
  const std::int64_t last = (panels_of(conv) - 1) * kPanelColumns;
  return (panels_of(conv) - 1) * tap_panel_values<float>(conv.weights, 0) +
         tap_panel_values<float>(conv.weights, last);
}

std::int64_t piece_rows(const LineConv& conv) {
  return std::max<std::int64_t>(kPieceValues / conv.weights.in / kSumRows, 1) * kSumRows;
}

struct Rows {
  std::int64_t begin = 0, end = 0;
};

// One convolution, cut into tasks.  Weights are packed by each worker for itself: that costs a few percent of
// what is multiplied with them, and nobody waits.
class LinePass {
 public:
  LinePass(const LineConv& conv, const LineInput& input, const FillRows* fill, const LineResult& result)
      : conv_(conv),
        input_(input),
        fill_(fill),
        result_(result),
        phases_(line_phases(conv)),
        seen_(seen_rows(phases_)),
        workers_(at::get_num_threads()) {
    if (input_.stride == 0) input_.stride = conv.weights.in;
    if (result_.stride == 0) result_.stride = conv.weights.out;
    y_rows_ = line_rows(conv, input.rows);
    all_in_cache_ = takes_pieces(conv);
    for (const LinePhase& phase : phases_) taps_.insert(taps_.end(), phase.taps.begin(), phase.taps.end());
    weight_values_ = all_in_cache_ ? packed_values(conv) : tap_panel_values<float>(conv.weights, 0);
    piece_values_ = fill ? (piece_rows(conv) + seen_.before + seen_.behind) * conv.weights.in : 0;
    packed_panel_.assign(static_cast<std::size_t>(workers_), -1);
  }

  void run() {
    const std::int64_t rows = ceil_div(y_rows_, conv_.stride);  // of the longest phase
    const std::int64_t panels = panels_of(conv_);
    worker_values_ = weight_values_ + piece_values_;
    scratch_ = scratch({workers_ * worker_values_}, at::kFloat).data_ptr<float>();
    std::int64_t step = fill_ ? piece_rows(conv_) : rows;
    const std::int64_t wanted = ceil_div(kTasksAWorker * workers_, all_in_cache_ ? 1 : panels);
    step = std::max(std::min(step, ceil_div(rows, wanted)), std::min(kFewestRows, step));
    step = ceil_div(step, kSumRows) * kSumRows;
    const std::int64_t pieces = ceil_div(rows, step);
    const std::int64_t groups = all_in_cache_ ? 1 : panels;
    each_task(workers_, groups * pieces, [&](std::int64_t worker, std::int64_t task) {
      const std::int64_t begin = task % pieces * step;
      work(worker, task / pieces, {begin, std::min(begin + step, rows)});
    });
  }

 private:
  float* weights_of(std::int64_t worker) const { return scratch_ + worker * worker_values_; }

  void work(std::int64_t worker, std::int64_t group, Rows rows) {
    pack(worker, group);
    const float* x = fill_ ? filled(worker, rows) : input_.x + rows.begin * input_.stride;
    const std::int64_t panels = all_in_cache_ ? panels_of(conv_) : 1;
    for (std::int64_t i = 0; i < panels; ++i) {
      const float* weights = weights_of(worker) + i * tap_panel_values<float>(conv_.weights, 0);
      const std::int64_t first = (all_in_cache_ ? i : group) * kPanelColumns;
      std::int64_t segment = 0;
      for (const LinePhase& phase : phases_) {
        multiply_phase(phase, weights + segment * conv_.weights.in * columns(first), first, x, rows);
        segment += static_cast<std::int64_t>(phase.taps.size());
      }
    }
  }

  std::int64_t columns(std::int64_t first) const { return panel_columns(first, conv_.weights.out); }

  void pack(std::int64_t worker, std::int64_t group) {
    std::int64_t& packed = packed_panel_[static_cast<std::size_t>(worker)];
    if (packed == group) return;
    packed = group;
    float* to = weights_of(worker);
    if (!all_in_cache_) return pack_tap_panel<float>(conv_.weights, group * kPanelColumns, taps_, to);
    for (std::int64_t first = 0; first < conv_.weights.out; first += kPanelColumns) {
      pack_tap_panel<float>(conv_.weights, first, taps_, to);
      to += tap_panel_values<float>(conv_.weights, first);
    }
  }

  // Input row rows.begin, with what the taps see around these rows.
  const float* filled(std::int64_t worker, Rows rows) const {
    const std::int64_t in = conv_.weights.in;
    float* piece = weights_of(worker) + weight_values_;
    const std::int64_t begin = rows.begin - seen_.before, end = rows.end + seen_.behind;
    const std::int64_t first = std::clamp<std::int64_t>(begin, 0, input_.rows);
    const std::int64_t last = std::clamp<std::int64_t>(end, first, input_.rows);
    std::fill_n(piece, (first - begin) * in, 0.0F);
    if (last > first) (*fill_)(first, last, piece + (first - begin) * in);
    std::fill_n(piece + (last - begin) * in, (end - last) * in, 0.0F);
    return piece + seen_.before * in;
  }

  // Rows of one phase and 32 columns: part by part of the taps, so that a part stays in cache.
  void multiply_phase(const LinePhase& phase, const float* weights, std::int64_t first, const float* x,
                      Rows rows) const {
    rows.end = std::min(rows.end, ceil_div(y_rows_ - phase.first, conv_.stride));
    const auto taps = static_cast<std::int64_t>(phase.taps.size());
    const std::int64_t tap_values = conv_.weights.in * columns(first);
    const std::int64_t parts = std::max<std::int64_t>(ceil_div(taps * tap_values, kPartValues), 1);
    const std::int64_t most = std::max<std::int64_t>(ceil_div(taps, parts), 1);
    std::vector<std::int64_t> segments;
    for (std::int64_t row : phase.rows) segments.push_back(row * input_.stride);
    for (std::int64_t tap = 0; tap == 0 || tap < taps; tap += most) {
      const std::int64_t count = std::min(most, taps - tap);
      const MicroProduct<float> product = {.a = x,
                                           .a_stride = input_.stride,
                                           .segments = segments.data() + tap,
                                           .segment_count = count,
                                           .depth = conv_.weights.in,
                                           .b = weights + tap * tap_values,
                                           .columns = columns(first),
                                           .add = true};
      add_part(product, phase, first, rows, {.first = tap == 0, .last = tap + count == taps});
    }
  }

  struct Part {
    bool first = true, last = true;
  };

  // Whole vectors of y hold the sums themselves; sums of a last panel that has more columns than y stand
  // beside it.
  void add_part(MicroProduct<float> product, const LinePhase& phase, std::int64_t first, Rows rows,
                Part part) const {
    alignas(64) float beside[kSumRows * kPanelColumns] = {};
    LineSums of = {.columns = std::min(product.columns, conv_.weights.out - first),
                   .stride = result_.stride * conv_.stride,
                   .bias = conv_.bias ? conv_.bias + first : nullptr,
                   .scale = result_.scale};
    const bool whole = of.columns == product.columns;
    for (std::int64_t row = rows.begin; row < rows.end; row += kSumRows) {
      of.rows = std::min(kSumRows, rows.end - row);
      const std::int64_t place = (phase.first + row * conv_.stride) * result_.stride + first;
      float* y = result_.y + place;
      product.c = whole ? y : beside;
      product.c_stride = whole ? of.stride : kPanelColumns;
      if (part.first) {
        for (int i = 0; i < 2; ++i) of.added[i] = result_.added[i] ? result_.added[i] + place : nullptr;
        begin_sums(of, product.c, product.c_stride);
      } else if (!whole) {
        copy_sums(of, y, of.stride, beside, kPanelColumns);
      }
      multiply(product, of.rows);
      product.a += of.rows * product.a_stride;
      if (part.last && of.scale != 1) scale_sums(of, product.c, product.c_stride);
      if (!whole) copy_sums(of, beside, kPanelColumns, y, of.stride);
    }
  }

  const LineConv& conv_;
  LineInput input_;
  const FillRows* fill_;
  LineResult result_;
  std::vector<LinePhase> phases_;
  LineReach seen_;
  std::int64_t workers_;
  std::int64_t y_rows_;
  bool all_in_cache_;
  std::vector<std::int64_t> taps_;  // in the order in which they are packed: phase by phase
  std::int64_t weight_values_, piece_values_, worker_values_ = 0;
  float* scratch_ = nullptr;
  std::vector<std::int64_t> packed_panel_;  // of each worker
};

}  // namespace

void conv_line(const LineConv& conv, const LineInput& input, const LineResult& result) {
  const WorkTimer timer(Work::convolution);
  LinePass(conv, input, nullptr, result).run();
}

void conv_line(const LineConv& conv, std::int64_t rows, const FillRows& fill, const LineResult& result) {
  const WorkTimer timer(Work::convolution);
  LinePass(conv, {.rows = rows}, &fill, result).run();
}

bool takes_pieces(const LineConv& conv) {
  return packed_values(conv) <= kFewWeights;
}

std::int64_t line_scratch(const LineConv& conv, std::int64_t threads) {
  const LineReach seen = seen_rows(line_phases(conv));
  const std::int64_t values =
      takes_pieces(conv)
          ? packed_values(conv) + (piece_rows(conv) + seen.before + seen.behind) * conv.weights.in
          : tap_panel_values<float>(conv.weights, 0);
  return threads * values * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace sluice::kernels
