#pragma once
// When the frames of a video are shown, and which of them is shown at the times n / rate.  Numbers only, all
// exact: times are whole ticks, rates fractions.

#include <sluice/units.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::media {

struct ShownFrame {
  std::int64_t at = 0;  // ticks from the first shown frame
  bool is_key = false;  // decoding can begin here
};

struct Timeline {
  Rational tick;                   // seconds
  std::vector<ShownFrame> frames;  // by time; at least one, the first at 0
  std::int64_t end = 0;            // where the last one ends, in ticks

  double seconds() const { return static_cast<double>(end) * tick.value(); }
};

// Containers round times to their ticks (a millisecond in Matroska), so a frame counts as shown up to half a
// tick, and at most half a millisecond, before its time.

// How many frames come out at `rate`: one for each n / rate before the end, at least one.
std::int64_t sampled_frames(const Timeline& timeline, Rational rate);

// The index of the frame that is shown at n / rate: the last that began by then.
std::size_t frame_shown_at(const Timeline& timeline, Rational rate, std::int64_t n);

// Frames a second, the mean where it varies: what the file states if its times agree with that as well as
// their rounding lets them, else the nearest that has a name.
Rational mean_rate(const Timeline& timeline, Rational stated);

// Whether every frame comes out once, in order.
bool is_one_to_one(const Timeline& timeline, Rational rate);

// Whether some frame lasts longer than another by more than the rounding of times explains.
bool has_variable_rate(const Timeline& timeline);

}  // namespace sluice::media
