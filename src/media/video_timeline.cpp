#include "media/video_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sluice::media {
namespace {

using Wide = __int128;  // products of a time, a tick and a rate

constexpr std::int64_t kRoundings = 2000;  // in a second: half a millisecond

// Half a tick or half a millisecond, whichever is less.
Rational tolerance(Rational tick) {
  const bool is_coarse = Wide{tick.num} * kRoundings > Wide{2} * tick.den;
  return is_coarse ? Rational{1, kRoundings} : Rational{tick.num, 2 * tick.den};
}

// ticks · tick - tolerance, as a fraction of `den`.
struct Moment {
  Wide num;
  Wide den;
};
Moment early(std::int64_t ticks, Rational tick) {
  const Rational less = tolerance(tick);
  return {Wide{ticks} * tick.num * less.den - Wide{less.num} * tick.den, Wide{tick.den} * less.den};
}

bool is_by(std::int64_t ticks, Rational tick, Rational rate, std::int64_t n) {
  const Moment begin = early(ticks, tick);
  return begin.num * rate.num <= Wide{n} * rate.den * begin.den;
}

}  // namespace

std::int64_t sampled_frames(const Timeline& timeline, Rational rate) {
  // The end is a sum of a time and a duration, each rounded.
  const Rational less = tolerance(timeline.tick);
  const Moment end = early(timeline.end, timeline.tick);
  const Wide num = (end.num * less.den - Wide{less.num} * end.den) * rate.num,
             den = end.den * less.den * rate.den;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>((num + den - 1) / den));
}

std::size_t frame_shown_at(const Timeline& timeline, Rational rate, std::int64_t n) {
  const auto after =
      std::partition_point(timeline.frames.begin(), timeline.frames.end(),
                           [&](const ShownFrame& frame) { return is_by(frame.at, timeline.tick, rate, n); });
  return after == timeline.frames.begin() ? 0 : static_cast<std::size_t>(after - timeline.frames.begin()) - 1;
}

Rational mean_rate(const Timeline& timeline, Rational stated) {
  const std::size_t gaps = timeline.frames.size() - 1;
  const double seconds =
      gaps == 0 ? timeline.seconds() : static_cast<double>(timeline.frames.back().at) * timeline.tick.value();
  const double mean = static_cast<double>(std::max<std::size_t>(gaps, 1)) / seconds;
  const double rounding = mean * 2 * tolerance(timeline.tick).value() / seconds;
  if (stated.num > 0 && std::abs(stated.value() - mean) <= rounding) return stated;
  if (std::abs(std::round(mean) - mean) <= rounding && mean >= 0.5) return {std::llround(mean), 1};
  constexpr double kMost = 1000;  // frames a second: beyond, and below a thousandth, no rate has a name
  if (mean > 0.001 && mean < kMost) return parse_frame_rate(fmt::format("{:.3f}", mean));
  return {std::llround(std::max(mean, 1.0)), 1};
}

bool is_one_to_one(const Timeline& timeline, Rational rate) {
  const auto count = static_cast<std::int64_t>(timeline.frames.size());
  if (sampled_frames(timeline, rate) != count) return false;
  for (std::int64_t n = 0; n < count; ++n)
    if (frame_shown_at(timeline, rate, n) != static_cast<std::size_t>(n)) return false;
  return true;
}

bool has_variable_rate(const Timeline& timeline) {
  std::int64_t shortest = 0, longest = 0;
  for (std::size_t i = 1; i < timeline.frames.size(); ++i) {
    const std::int64_t lasts = timeline.frames[i].at - timeline.frames[i - 1].at;
    shortest = i == 1 ? lasts : std::min(shortest, lasts);
    longest = std::max(longest, lasts);
  }
  // Both ends of both frames are rounded.
  const Rational rounding = tolerance(timeline.tick);
  return Wide{longest - shortest} * timeline.tick.num * rounding.den >
         Wide{4} * rounding.num * timeline.tick.den;
}

}  // namespace sluice::media
