#include "kernels/tap_panels.h"

#include "kernels/pack.h"

#include <algorithm>
#include <type_traits>
#include <vector>

namespace sluice::kernels {
namespace {

// Words that are put in order at once, of each of sixteen channels: with what they come from and go to they
// stay in the first cache.
constexpr std::int64_t kChunkWords = 224;
constexpr std::int64_t kSlack = 2 * kLanes;  // vectors read and write beyond the end of a row

template <typename T>
std::int64_t words_in(const TapWeights& weights) {  // of one tap
  return (weights.in + kWordValues<T> - 1) / kWordValues<T>;
}

// Where a tap's words go: its segment, or nowhere.
std::vector<std::int64_t> segments_of(std::int64_t count, std::span<const std::int64_t> taps) {
  std::vector<std::int64_t> segments(static_cast<std::size_t>(count), -1);
  if (taps.empty()) {
    for (std::int64_t tap = 0; tap < count; ++tap) segments[static_cast<std::size_t>(tap)] = tap;
  } else {
    for (std::size_t i = 0; i < taps.size(); ++i)
      segments[static_cast<std::size_t>(taps[i])] = static_cast<std::int64_t>(i);
  }
  return segments;
}

// to[i] = the pair first[i], second[i].  Up to sixteen words behind the last are written as well.
SLUICE_INLINE void interleave_row(const Bf16* first, const Bf16* second, std::int64_t count,
                                  std::uint32_t* to) {
  for (std::int64_t i = 0; i < count; i += kLanes) {
    LaneHalves a, b;
    std::memcpy(&a, first + i, sizeof a);
    std::memcpy(&b, second + i, sizeof b);
    const LaneBits pairs = __builtin_convertvector(a, LaneBits) | __builtin_convertvector(b, LaneBits) << 16;
    std::memcpy(to + i, &pairs, sizeof pairs);
  }
}

struct Pairs {              // of rows of values that lie behind each other, first beside second
  std::int64_t count = 0;   // of pairs
  std::int64_t length = 0;  // values of a row
  std::int64_t next = 0;    // values from a pair to the next
};

SLUICE_INLINE void interleave_pairs_body(const Pairs& pairs, const Bf16* from, std::uint32_t* to) {
  for (std::int64_t p = 0; p < pairs.count; ++p, from += pairs.next, to += pairs.length)
    interleave_row(from, from + pairs.length, pairs.length, to);
}

struct Lines {                           // of sixteen words each, one for every word of a chunk
  const std::uint32_t* from = nullptr;   // [word][16]
  std::int64_t first_word = 0, end = 0;  // of a tap
  const std::int64_t* segments = nullptr;
  std::int64_t taps = 0, words = 0, columns = 0;
};

SLUICE_INLINE void scatter_body(const Lines& lines, std::uint32_t* to) {
  const std::uint32_t* from = lines.from;
  for (std::int64_t word = lines.first_word; word < lines.end; ++word) {
    for (std::int64_t tap = 0; tap < lines.taps; ++tap, from += kLanes) {
      if (lines.segments[tap] < 0) continue;
      LaneBits line;
      std::memcpy(&line, from, sizeof line);
      std::memcpy(to + (lines.segments[tap] * lines.words + word) * lines.columns, &line, sizeof line);
    }
  }
}

SLUICE_COMPILE(void, interleave_pairs, (const Pairs& pairs, const Bf16* from, std::uint32_t* to),
               (pairs, from, to))
SLUICE_COMPILE(void, scatter, (const Lines& lines, std::uint32_t* to), (lines, to))

void widen(const StoredValues& from, std::int64_t first, std::int64_t count, float* to) {
  if (from.format != Stored::f32) return widen_values(from, first, count, to);
  std::memcpy(to, from.values + 4 * first, static_cast<std::size_t>(4 * count));
}
void widen(const StoredValues& from, std::int64_t first, std::int64_t count, Bf16* to) {
  if (from.format != Stored::bf16) return widen_values(from, first, count, to);
  std::memcpy(to, from.values + 2 * first, static_cast<std::size_t>(2 * count));
}

// Reused by the thread: panels are packed again and again.
struct Buffers {
  std::vector<Bf16> values;          // of one row, as [in][tap]
  std::vector<std::uint32_t> rows;   // [row][word]
  std::vector<std::uint32_t> lines;  // [word][row]
};
thread_local Buffers buffers;

// Of a group of sixteen output channels: chunk by chunk of input channels, rows of words become lines.
template <typename T>
class GroupPacker {
 public:
  GroupPacker(const TapWeights& weights, std::int64_t channel, std::span<const std::int64_t> segments)
      : weights_(weights),
        channel_(channel),
        channels_(std::min(kLanes, weights.out - channel)),
        segments_(segments),
        words_(words_in<T>(weights)) {}

  void pack(std::int64_t columns, std::uint32_t* to) {
    const std::int64_t step =
        weights_.transposed ? 1 : std::max<std::int64_t>(kChunkWords / weights_.taps, 1);
    for (std::int64_t word = 0; word < words_; word += step) {
      const std::int64_t end = std::min(word + step, words_);
      begin_rows((end - word) * weights_.taps);
      weights_.transposed ? load_transposed(word) : load(word, end);
      end_rows();
      best_of(k_scatter)({.from = buffers.lines.data(),
                          .first_word = word,
                          .end = end,
                          .segments = segments_.data(),
                          .taps = weights_.taps,
                          .words = words_,
                          .columns = columns},
                         to);
    }
  }

 private:
  static constexpr std::int64_t kWord = kWordValues<T>;

  void begin_rows(std::int64_t length) {
    length_ = length;
    const auto words = static_cast<std::size_t>(kLanes * length + kSlack);
    if (buffers.rows.size() < words) buffers.rows.resize(words);
    if (buffers.values.size() < 2 * words) buffers.values.resize(2 * words);
  }

  void load(std::int64_t word, std::int64_t end) {  // from [out][in][tap]
    const std::int64_t taps = weights_.taps;
    for (std::int64_t row = 0; row < channels_; ++row) {
      T* values = values_of(row * length_);
      read(((channel_ + row) * weights_.in + word * kWord) * taps,
           std::min((end - word) * kWord, weights_.in - word * kWord) * taps, length_ * kWord, values);
      join({.count = end - word, .length = taps, .next = 2 * taps}, row * length_);
    }
  }

  void load_transposed(std::int64_t word) {  // from [in][out][tap]
    const std::int64_t length = channels_ * weights_.taps;
    for (std::int64_t part = 0; part < kWord; ++part) {
      const std::int64_t in = word * kWord + part;
      read((in * weights_.out + channel_) * weights_.taps, in < weights_.in ? length : 0, length,
           values_of(0) + part * length);
    }
    join({.count = 1, .length = length}, 0);
  }

  // Values of f32 are words where they are read to.
  T* values_of(std::int64_t word) {
    if constexpr (std::is_same_v<T, float>)
      return reinterpret_cast<float*>(buffers.rows.data()) + word;
    else
      return buffers.values.data();
  }
  void join(const Pairs& pairs, std::int64_t word) {
    if constexpr (std::is_same_v<T, Bf16>)
      best_of(k_interleave_pairs)(pairs, buffers.values.data(), buffers.rows.data() + word);
  }

  // `count` values from `first` on, and zeros behind them up to `length`.
  void read(std::int64_t first, std::int64_t count, std::int64_t length, T* to) {
    if (count) widen(weights_.values, first, count, to);
    std::fill(to + count, to + length, T{});
  }

  // Whole squares of words: what lies behind the last ones is turned as well, and left.
  void end_rows() {
    std::fill_n(buffers.rows.data() + channels_ * length_, (kLanes - channels_) * length_ + kSlack, 0U);
    const std::int64_t words = (length_ + kLanes - 1) / kLanes * kLanes;
    const auto lines = static_cast<std::size_t>(words * kLanes);
    if (buffers.lines.size() < lines) buffers.lines.resize(lines);
    transpose_words({.from = reinterpret_cast<const std::byte*>(buffers.rows.data()),
                     .stride = 4 * length_,
                     .rows = kLanes,
                     .words = words},
                    reinterpret_cast<std::byte*>(buffers.lines.data()), kLanes);
  }

  const TapWeights& weights_;
  std::int64_t channel_, channels_;
  std::span<const std::int64_t> segments_;
  std::int64_t words_;
  std::int64_t length_ = 0;  // words of a row
};

std::int64_t segment_count(const TapWeights& weights, std::span<const std::int64_t> taps) {
  return taps.empty() ? weights.taps : static_cast<std::int64_t>(taps.size());
}

}  // namespace

template <typename T>
std::int64_t tap_panel_values(const TapWeights& weights, std::int64_t first) {
  return weights.taps * words_in<T>(weights) * kWordValues<T> * panel_columns(first, weights.out);
}

template <typename T>
void pack_tap_panel(const TapWeights& weights, std::int64_t first, std::span<const std::int64_t> taps,
                    T* to) {
  const std::vector<std::int64_t> segments = segments_of(weights.taps, taps);
  const std::int64_t columns = panel_columns(first, weights.out);
  for (std::int64_t column = 0; column < columns; column += kLanes)
    GroupPacker<T>(weights, first + column, segments)
        .pack(columns, reinterpret_cast<std::uint32_t*>(to) + column);
}

namespace reference {

template <typename T>
void pack_tap_panel(const TapWeights& weights, std::int64_t first, std::span<const std::int64_t> taps,
                    T* to) {
  constexpr std::int64_t kWord = kWordValues<T>;
  const std::int64_t columns = panel_columns(first, weights.out), words = words_in<T>(weights);
  std::fill_n(to, segment_count(weights, taps) * words * kWord * columns, T{});
  for (std::int64_t segment = 0; segment < segment_count(weights, taps); ++segment) {
    const std::int64_t tap = taps.empty() ? segment : taps[static_cast<std::size_t>(segment)];
    for (std::int64_t in = 0; in < weights.in; ++in) {
      for (std::int64_t out = first; out < std::min(first + columns, weights.out); ++out) {
        const std::int64_t row = weights.transposed ? in * weights.out + out : out * weights.in + in;
        const std::int64_t line = (segment * words + in / kWord) * columns + out - first;
        reference::widen_values(weights.values, row * weights.taps + tap, 1, to + line * kWord + in % kWord);
      }
    }
  }
}

template void pack_tap_panel(const TapWeights&, std::int64_t, std::span<const std::int64_t>, float*);
template void pack_tap_panel(const TapWeights&, std::int64_t, std::span<const std::int64_t>, Bf16*);

}  // namespace reference

template std::int64_t tap_panel_values<float>(const TapWeights&, std::int64_t);
template std::int64_t tap_panel_values<Bf16>(const TapWeights&, std::int64_t);
template void pack_tap_panel(const TapWeights&, std::int64_t, std::span<const std::int64_t>, float*);
template void pack_tap_panel(const TapWeights&, std::int64_t, std::span<const std::int64_t>, Bf16*);

}  // namespace sluice::kernels
