#include "kernels/smooth_snake.h"

#include "kernels/snake_rows.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace sluice::kernels {
namespace {

constexpr std::int64_t kTileChannels = 64;  // of wide rows; narrow ones are taken whole
constexpr std::int64_t kTileNumbers = kTileChannels + kSnakeVector;
// Of the raised rows of a block, all phases together: half of a first cache.
constexpr std::int64_t kBlockValues = 6144;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

// The filter's taps that fall on samples, by phase of the raised row.  In the reference's words the samples
// are padded with kernel / ratio - 1 copies on either side and what is too much of the result is cut off.
std::vector<std::vector<SmoothSnake::Tap>> up_taps(const SnakeFilters& filters) {
  const auto kernel = static_cast<std::int64_t>(filters.up.size());
  const std::int64_t cut = (kernel - filters.ratio) / 2;
  std::vector<std::vector<SmoothSnake::Tap>> phases(static_cast<std::size_t>(filters.ratio));
  for (std::int64_t phase = 0; phase < filters.ratio; ++phase) {
    for (std::int64_t k = kernel - 1; k >= 0; --k) {  // from the first sample to the last
      if ((phase + cut - k) % filters.ratio != 0) continue;
      phases[static_cast<std::size_t>(phase)].push_back(
          {.row = (phase + cut - k) / filters.ratio,
           .phase = 0,
           .weight = filters.up[static_cast<std::size_t>(k)] * static_cast<float>(filters.ratio)});
    }
  }
  return phases;
}

std::vector<SmoothSnake::Tap> down_taps(const SnakeFilters& filters) {
  const auto kernel = static_cast<std::int64_t>(filters.down.size());
  const std::int64_t before = kernel / 2 + kernel % 2 - 1;
  std::vector<SmoothSnake::Tap> taps;
  for (std::int64_t k = 0; k < kernel; ++k) {
    const std::int64_t row = floor_div(k - before, filters.ratio);
    taps.push_back({.row = row,
                    .phase = k - before - row * filters.ratio,
                    .weight = filters.down[static_cast<std::size_t>(k)]});
  }
  return taps;
}

// A tile's numbers, repeated so that vectors may begin at every channel, behind those of the tile before.
std::vector<float> repeated(std::span<const float> numbers) {
  std::vector<float> all;
  for (std::size_t first = 0; first < numbers.size(); first += kTileChannels) {
    const auto tile = numbers.subspan(first, std::min<std::size_t>(kTileChannels, numbers.size() - first));
    for (std::size_t i = 0; i < kTileNumbers; ++i) all.push_back(tile[i % tile.size()]);
  }
  return all;
}

struct Reach {  // rows before and behind a row
  std::int64_t before = 0, behind = 0;

  void include(const SmoothSnake::Tap& tap) {
    before = std::max(before, -tap.row);
    behind = std::max(behind, tap.row);
  }
};

struct Tile {  // columns
  std::int64_t first = 0, width = 0;
};

// Rows of one thread, block by block: the raised rows of a block lie by phase, so that neighbours of a filter
// are neighbours in memory.
class BlockPass {
 public:
  BlockPass(const SmoothSnake& snake, const float* frequency, const float* amplitude, const float* x,
            std::int64_t rows)
      : snake_(snake), frequency_(frequency), amplitude_(amplitude), x_(x), rows_(rows) {
    for (const auto& taps : snake.up())
      for (const SmoothSnake::Tap& tap : taps) up_reach_.include(tap);
    for (const SmoothSnake::Tap& tap : snake.down()) down_reach_.include(tap);
    phases_ = static_cast<std::int64_t>(snake.up().size());
    const std::int64_t tile = std::min(snake.channels(), kTileChannels);
    block_rows_ = std::max<std::int64_t>(kBlockValues / (phases_ * tile), 1);
    const std::int64_t raised_rows = block_rows_ + down_reach_.before + down_reach_.behind;
    raised_.resize(static_cast<std::size_t>(phases_ * raised_rows * tile));
    bordered_.resize(static_cast<std::size_t>((raised_rows + up_reach_.before + up_reach_.behind) * tile));
  }

  void run(std::int64_t begin, std::int64_t end, float* y) {
    const std::int64_t channels = snake_.channels();
    for (std::int64_t row = begin; row < end; row += block_rows_) {
      const std::int64_t block_end = std::min(row + block_rows_, end);
      for (std::int64_t first = 0; first < channels; first += kTileChannels) {
        tile_ = {.first = first, .width = std::min(kTileChannels, channels - first)};
        raise(row - down_reach_.before, block_end + down_reach_.behind);
        lower(row, block_end, y + (row - begin) * channels + first);
      }
    }
  }

 private:
  // Rows that lie behind each other are one run.
  void set_runs(FilterRuns& runs, std::int64_t rows) const {
    const bool whole = runs.from_stride == tile_.width && runs.to_stride == tile_.width;
    runs.runs = whole ? 1 : rows;
    runs.length = whole ? rows * tile_.width : tile_.width;
  }

  // Raised rows [begin, end) of each phase; those outside of the wave are copies of its ends.
  void raise(std::int64_t begin, std::int64_t end) {
    const std::int64_t first = std::max<std::int64_t>(begin, 0), last = std::min(end, rows_);
    phase_values_ = (end - begin) * tile_.width;
    raised_begin_ = begin;
    FilterRuns runs = input(first, last);
    runs.to_stride = tile_.width;
    set_runs(runs, last - first);
    for (std::int64_t phase = 0; phase < phases_; ++phase) {
      const auto& taps = snake_.up()[static_cast<std::size_t>(phase)];
      flat_.clear();
      for (const SmoothSnake::Tap& tap : taps) flat_.push_back({tap.row * runs.from_stride, tap.weight});
      runs.taps = flat_.data();
      runs.tap_count = static_cast<std::int64_t>(flat_.size());
      runs.to = raised(phase, first);
      const std::int64_t first_number = tile_.first / kTileChannels * kTileNumbers;
      const SnakeNumbers numbers = {frequency_ + first_number, amplitude_ + first_number, tile_.width};
      if (!filter_and_snake_rows(runs, numbers)) reference::filter_and_snake_rows(runs, numbers);
    }
    repeat_ends(begin, first, last, end);
  }

  float* raised(std::int64_t phase, std::int64_t row) {
    return raised_.data() + phase * phase_values_ + (row - raised_begin_) * tile_.width;
  }

  void repeat_ends(std::int64_t begin, std::int64_t first, std::int64_t last, std::int64_t end) {
    for (std::int64_t phase = 0; phase < phases_; ++phase) {
      for (std::int64_t row = begin; row < first; ++row)
        std::copy_n(raised(0, 0), tile_.width, raised(phase, row));
      for (std::int64_t row = last; row < end; ++row)
        std::copy_n(raised(phases_ - 1, rows_ - 1), tile_.width, raised(phase, row));
    }
  }

  // Where rows [first, last) and what the filter sees around them lie: in the wave, or beside copies of its
  // ends.
  FilterRuns input(std::int64_t first, std::int64_t last) {
    const std::int64_t channels = snake_.channels();
    const std::int64_t begin = first - up_reach_.before, end = last + up_reach_.behind;
    if (begin >= 0 && end <= rows_)
      return {.from = x_ + first * channels + tile_.first, .from_stride = channels};
    for (std::int64_t row = begin; row < end; ++row)
      std::copy_n(x_ + std::clamp<std::int64_t>(row, 0, rows_ - 1) * channels + tile_.first, tile_.width,
                  bordered_.data() + (row - begin) * tile_.width);
    return {.from = bordered_.data() + up_reach_.before * tile_.width, .from_stride = tile_.width};
  }

  void lower(std::int64_t begin, std::int64_t end, float* y) {
    flat_.clear();
    for (const SmoothSnake::Tap& tap : snake_.down())
      flat_.push_back({tap.phase * phase_values_ + tap.row * tile_.width, tap.weight});
    FilterRuns runs = {.from = raised(0, begin),
                       .to = y,
                       .from_stride = tile_.width,
                       .to_stride = snake_.channels(),
                       .taps = flat_.data(),
                       .tap_count = static_cast<std::int64_t>(flat_.size())};
    set_runs(runs, end - begin);
    filter_rows(runs);
  }

  const SmoothSnake& snake_;
  const float *frequency_, *amplitude_, *x_;
  std::int64_t rows_;
  Reach up_reach_, down_reach_;
  std::int64_t phases_, block_rows_;
  Tile tile_;
  std::int64_t phase_values_ = 0, raised_begin_ = 0;
  std::vector<float> raised_, bordered_;
  std::vector<FlatTap> flat_;
};

}  // namespace

SmoothSnake::SmoothSnake(const SnakeFilters& filters, std::span<const float> frequency,
                         std::span<const float> amplitude)
    : channels_(static_cast<std::int64_t>(frequency.size())) {
  if (filters.ratio < 1 || static_cast<std::int64_t>(filters.up.size()) < filters.ratio ||
      filters.down.size() != filters.up.size() || frequency.empty() || amplitude.size() != frequency.size())
    throw Error(ErrorKind::internal,
                fmt::format("smooth snake: filters of {} and {} taps at ratio {}, {} frequencies and {} "
                            "amplitudes do not fit each other",
                            filters.up.size(), filters.down.size(), filters.ratio, frequency.size(),
                            amplitude.size()));
  up_ = up_taps(filters);
  down_ = down_taps(filters);
  frequency_ = repeated(frequency);
  amplitude_ = repeated(amplitude);
}

void SmoothSnake::run(const float* x, std::int64_t rows, std::int64_t begin, std::int64_t end,
                      float* y) const {
  BlockPass(*this, frequency_.data(), amplitude_.data(), x, rows).run(begin, end, y);
}

}  // namespace sluice::kernels
