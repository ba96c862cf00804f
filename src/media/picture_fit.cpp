#include "media/picture_fit.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace sluice::media {
namespace {

// One side: `from` pixels become `scaled`, of which those from `cut` on (or, negative, those behind so much
// black) are shown.
struct Side {
  int from;
  int scaled;
  int cut;
};

struct Placing {
  Side x;
  Side y;
};

Side side(int from, int scaled, int to) {
  // Halves are cut as Python's // does it: toward more at the left.
  return {from, scaled, static_cast<int>(std::floor((scaled - to) / 2.0))};
}

Placing place(FitSize from, Fit fit, FitSize to) {
  const double by_height = static_cast<double>(to.height) / from.height;
  const double by_width = static_cast<double>(to.width) / from.width;
  if (fit == Fit::stretch)
    return {side(from.width, to.width, to.width), side(from.height, to.height, to.height)};
  if (fit == Fit::crop) {
    // f64 and rounded up, so that a product a hair above a whole number gives one pixel more, as in the
    // reference (LTX2ConditionPipeline.preprocess_conditions).
    const double scale = std::max(by_height, by_width);
    const auto scaled = [&](int size) { return static_cast<int>(std::ceil(size * scale)); };
    return {side(from.width, scaled(from.width), to.width),
            side(from.height, scaled(from.height), to.height)};
  }
  // The side that decides fills the size; the other is rounded down, exactly.
  const auto part = [](std::int64_t size, int to, int from) {
    return static_cast<int>(std::max<std::int64_t>(size * to / from, 1));
  };
  const bool height_decides = std::int64_t{from.width} * to.height <= std::int64_t{to.width} * from.height;
  const int width = height_decides ? part(from.width, to.height, from.height) : to.width;
  const int height = height_decides ? to.height : part(from.height, to.width, from.width);
  return {side(from.width, width, to.width), side(from.height, height, to.height)};
}

// Where an output pixel's value comes from.
struct Tap {
  int first = 0;
  int second = 0;
  float part = 0;  // of the second
  bool is_black = false;
};

// torch's interpolate in f32: source = scale (i + 0.5) - 0.5, not below 0.
std::vector<Tap> taps(const Side& side, int size) {
  const float scale = static_cast<float>(side.from) / static_cast<float>(side.scaled);
  std::vector<Tap> taps(size);
  for (int i = 0; i < size; ++i) {
    const int at = i + side.cut;
    if (at < 0 || at >= side.scaled) {
      taps[i].is_black = true;
      continue;
    }
    const float source = std::max(std::fma(scale, static_cast<float>(at) + 0.5f, -0.5f), 0.0f);
    const int first = std::min(static_cast<int>(source), side.from - 1);
    taps[i] = {.first = first,
               .second = std::min(first + 1, side.from - 1),
               .part = std::min(source - static_cast<float>(first), 1.0f)};
  }
  return taps;
}

constexpr float kBlack = -1.0f;

void fit_row(const RgbFrame& picture, const Tap& line, const std::vector<Tap>& columns,
             std::span<float> planes, std::size_t plane_size, std::size_t at) {
  const std::uint8_t* above = &picture.pixels[std::size_t{3} * picture.width * line.first];
  const std::uint8_t* below = &picture.pixels[std::size_t{3} * picture.width * line.second];
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Tap& tap = columns[i];
    for (int channel = 0; channel < 3; ++channel) {
      float& to = planes[channel * plane_size + at + i];
      if (tap.is_black || line.is_black) {
        to = kBlack;
        continue;
      }
      const auto across = [&](const std::uint8_t* row) {
        const float first = row[3 * tap.first + channel], second = row[3 * tap.second + channel];
        return (1 - tap.part) * first + tap.part * second;
      };
      to = ((1 - line.part) * across(above) + line.part * across(below)) / 127.5f - 1.0f;
    }
  }
}

// What is cut, in pixels of the picture, or the black bar in those of the size.
std::string lost_at(const Side& side, int size, std::string_view sides) {
  const int over = side.scaled - size;
  if (over < 0) return fmt::format("black {} pixels {}", (1 - over) / 2, sides);
  const std::int64_t cut = std::llround(0.5 * over * side.from / side.scaled);
  return cut == 0 ? std::string{} : fmt::format("cut {} pixels {}", cut, sides);
}

std::string joined(const std::string& first, const std::string& second) {
  return first + (first.empty() || second.empty() ? "" : ", ") + second;
}

}  // namespace

void fit_picture(const RgbFrame& picture, Fit fit, FitSize size, std::span<float> planes) {
  const std::size_t plane_size = static_cast<std::size_t>(size.width) * size.height;
  if (!picture.is_whole() || size.width <= 0 || size.height <= 0 || planes.size() != 3 * plane_size) {
    throw Error(ErrorKind::internal,
                fmt::format("a picture of {} x {} with {} bytes into {} x {} with {} numbers", picture.width,
                            picture.height, picture.pixels.size(), size.width, size.height, planes.size()));
  }
  const Placing placing = place({picture.width, picture.height}, fit, size);
  const std::vector<Tap> columns = taps(placing.x, size.width), lines = taps(placing.y, size.height);
  for (int row = 0; row < size.height; ++row)
    fit_row(picture, lines[row], columns, planes, plane_size, static_cast<std::size_t>(row) * size.width);
}

std::string fit_note(FitSize from, Fit fit, FitSize to) {
  const std::string sizes = fmt::format("{}x{} to {}x{}", from.width, from.height, to.width, to.height);
  const std::int64_t before = std::int64_t{from.width} * to.height,
                     after = std::int64_t{to.width} * from.height;
  if (fit == Fit::stretch) {
    if (before == after) return {};
    return fmt::format(
        "{}: {} to {:.1f} %", sizes, before > after ? "width squeezed" : "height squeezed",
        100.0 * static_cast<double>(std::min(before, after)) / static_cast<double>(std::max(before, after)));
  }
  const Placing placing = place(from, fit, to);
  const std::string told =
      joined(lost_at(placing.x, to.width, "left and right"), lost_at(placing.y, to.height, "top and bottom"));
  return told.empty() ? told : fmt::format("{}: {}", sizes, told);
}

}  // namespace sluice::media
