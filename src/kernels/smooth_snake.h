#pragma once
// The antialiased snake over channels-last rows: y = down(snake(up(x))) with snake(u) = u + amplitude ·
// sin²(frequency · u), so that the harmonics which the sine makes do not fold back.  One pass, all in f32:
// the samples at the higher rate exist for a block in cache only.
//
//   up:   zeros between the samples, the filter over them, times ratio
//   down: the filter over that, every ratio-th sample
// Before either, the border samples are repeated as often as the filter looks beyond them.

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::kernels {

struct SnakeFilters {
  std::int64_t ratio = 2;
  std::span<const float> up, down;  // equally many taps, at least `ratio`
};

// One layer's numbers; they are copied.  Immutable: any thread.
class SmoothSnake {
 public:
  // frequency, amplitude: one a channel.  Error(internal) where sizes do not fit each other.
  SmoothSnake(const SnakeFilters& filters, std::span<const float> frequency,
              std::span<const float> amplitude);

  // The calling thread makes rows [begin, end) of the result from a wave of `rows` rows.  x: [rows,
  // channels], y: [end - begin, channels], f32 at any address.  A row's values do not depend on `begin` and
  // `end`.
  void run(const float* x, std::int64_t rows, std::int64_t begin, std::int64_t end, float* y) const;

  std::int64_t channels() const { return channels_; }

  struct Tap {
    std::int64_t row = 0;    // of the input, from the result's row on
    std::int64_t phase = 0;  // down: of the raised rows
    float weight = 0;
  };
  const std::vector<std::vector<Tap>>& up() const { return up_; }  // one list a phase
  const std::vector<Tap>& down() const { return down_; }

 private:
  std::int64_t channels_;
  std::vector<std::vector<Tap>> up_;
  std::vector<Tap> down_;
  std::vector<float> frequency_, amplitude_;  // by tile of channels
};

namespace reference {
// The plain twins, step by step.  Rows at the higher rate: [rows · ratio, channels].
void snake_up(const SnakeFilters& filters, const float* x, std::int64_t rows, std::int64_t channels,
              float* to);
void snake(std::span<const float> frequency, std::span<const float> amplitude, float* x, std::int64_t rows);
void snake_down(const SnakeFilters& filters, const float* x, std::int64_t rows, std::int64_t channels,
                float* to);  // rows: of the result
}  // namespace reference

}  // namespace sluice::kernels
