#include "media/frame_rows.h"

#include <sluice/error.h>

#include <fmt/format.h>
extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sluice::media {
namespace {

const AVPixFmtDescriptor& readable_format(const AVFrame& frame, const std::filesystem::path& path) {
  constexpr int kOther = AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  if (format != nullptr && (format->flags & kOther) == 0 && format->comp[0].depth <= 16 &&
      frame.format != AV_PIX_FMT_XYZ12LE && frame.format != AV_PIX_FMT_XYZ12BE) {
    return *format;
  }
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: has pixels of the kind '{}', which is not supported", path.string(),
                          format == nullptr ? "unknown" : format->name),
              "save it with 8 or 16 bits a channel");
}

std::uint8_t to_8_bits(std::uint32_t value, int depth) {
  const std::uint32_t most = (1u << depth) - 1;
  return static_cast<std::uint8_t>((value * 255 + most / 2) / most);
}

std::uint8_t round_to_8_bits(float value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0f, 255.0f) + 0.5f);
}

}  // namespace

FrameRows::Between FrameRows::between(double at, int count) {
  const double low = std::floor(at);
  const auto clamped = [&](double index) { return static_cast<int>(std::clamp(index, 0.0, count - 1.0)); };
  return {clamped(low), clamped(low + 1), static_cast<float>(at - low)};
}

FrameRows::FrameRows(const AVFrame& frame, const ColourMeaning& meaning, const std::filesystem::path& path)
    : frame_(frame), format_(readable_format(frame, path)), meaning_(meaning) {
  const auto width = static_cast<std::size_t>(frame.width);
  raw_.resize(width);
  if (is_grey() || (format_.flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)) != 0) return;
  for (std::vector<float>* row : {&luma_, &blue_difference_, &red_difference_, &narrow_}) row->resize(width);
  const int columns = 1 << format_.log2_chroma_w;
  for (int i = 0; columns > 1 && i < frame.width; ++i) {
    columns_.push_back(between((i - meaning_.left * (columns - 1)) / columns,
                               AV_CEIL_RSHIFT(frame.width, format_.log2_chroma_w)));
  }
}

bool FrameRows::is_grey() const {
  return format_.nb_components <= 2 && (format_.flags & AV_PIX_FMT_FLAG_PAL) == 0;
}

bool FrameRows::has_alpha() const {
  return (format_.flags & AV_PIX_FMT_FLAG_ALPHA) != 0 || (format_.flags & AV_PIX_FMT_FLAG_PAL) != 0;
}

bool FrameRows::has_many_bits() const {
  return format_.comp[0].depth > 8;
}

void FrameRows::numbers(int index, int row, std::span<std::uint16_t> to) const {
  const AVComponentDescriptor& component = format_.comp[index];
  if (component.depth == 8 && component.shift == 0 && (format_.flags & AV_PIX_FMT_FLAG_BITSTREAM) == 0) {
    const std::uint8_t* from = frame_.data[component.plane] +
                               std::ptrdiff_t{row} * frame_.linesize[component.plane] + component.offset;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i * component.step];
    return;
  }
  const std::uint8_t* planes[4] = {frame_.data[0], frame_.data[1], frame_.data[2], frame_.data[3]};
  av_read_image_line2(to.data(), planes, frame_.linesize, &format_, 0, row, index,
                      static_cast<int>(to.size()), 0, sizeof(std::uint16_t));
}

void FrameRows::component(int index, int row, std::span<std::uint8_t> to) const {
  std::vector<std::uint16_t> raw(to.size());
  numbers(index, row, raw);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_8_bits(raw[i], format_.comp[index].depth);
}

// A palette has 256 entries of 0xAARRGGBB in the machine's own order.
void FrameRows::palette_row(int row, int shift, std::span<std::uint8_t> to, int step) const {
  const std::uint8_t* indices = frame_.data[0] + std::ptrdiff_t{row} * frame_.linesize[0];
  for (int i = 0; i < frame_.width; ++i) {
    std::uint32_t entry = 0;
    std::memcpy(&entry, frame_.data[1] + std::size_t{4} * indices[i], sizeof entry);
    to[static_cast<std::size_t>(i) * step] = static_cast<std::uint8_t>(entry >> shift);
  }
}

void FrameRows::grey(int row, std::span<std::uint8_t> to) {
  const int depth = format_.comp[0].depth;
  numbers(0, row, raw_);
  const bool is_inverted = frame_.format == AV_PIX_FMT_MONOWHITE;
  const float low = meaning_.full_range || depth < 8 ? 0.0f : static_cast<float>(16 << (depth - 8));
  const float scale = low == 0 ? 0.0f : 255.0f / static_cast<float>(219 << (depth - 8));
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] =
        low == 0 ? to_8_bits(raw_[i], depth) : round_to_8_bits((static_cast<float>(raw_[i]) - low) * scale);
    if (is_inverted) to[i] = 255 - to[i];
  }
}

void FrameRows::alpha(int row, std::span<std::uint8_t> to) {
  if ((format_.flags & AV_PIX_FMT_FLAG_PAL) != 0) return palette_row(row, 24, to, 1);
  const int index = format_.nb_components - 1;
  numbers(index, row, raw_);
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to_8_bits(raw_[i], format_.comp[index].depth);
}

void FrameRows::rgb(int row, std::span<std::uint8_t> to) {
  const auto width = static_cast<std::size_t>(frame_.width);
  const bool has_palette = (format_.flags & AV_PIX_FMT_FLAG_PAL) != 0;
  if (!has_palette && (format_.flags & AV_PIX_FMT_FLAG_RGB) == 0) return yuv(row, to);
  for (int channel = 0; channel < 3; ++channel) {
    if (has_palette) {
      palette_row(row, 16 - 8 * channel, to.subspan(channel), 3);
      continue;
    }
    numbers(channel, row, raw_);
    for (std::size_t i = 0; i < width; ++i)
      to[3 * i + channel] = to_8_bits(raw_[i], format_.comp[channel].depth);
  }
}

// As a number from 0 (black) to 255 (white), and beyond at both ends.
void FrameRows::luma(int row) {
  const int more = format_.comp[0].depth - 8;
  const float low = meaning_.full_range ? 0.0f : static_cast<float>(16 << more);
  const float high =
      meaning_.full_range ? static_cast<float>((1 << (more + 8)) - 1) : static_cast<float>(235 << more);
  const float scale = 255.0f / (high - low);
  numbers(0, row, raw_);
  for (std::size_t i = 0; i < luma_.size(); ++i) luma_[i] = (static_cast<float>(raw_[i]) - low) * scale;
}

// From -127.5 to 127.5, at every pixel of the row.
void FrameRows::colour_difference(int index, int row, std::span<float> to) {
  const int rows = 1 << format_.log2_chroma_h;
  const int narrow = AV_CEIL_RSHIFT(frame_.width, format_.log2_chroma_w);
  const int low = AV_CEIL_RSHIFT(frame_.height, format_.log2_chroma_h);
  const int more = format_.comp[index].depth - 8;
  const float middle = static_cast<float>(128 << more);
  const float scale = meaning_.full_range ? 255.0f / static_cast<float>((1 << (more + 8)) - 1)
                                          : 255.0f / static_cast<float>(224 << more);

  const Between lines = between((row - meaning_.top * (rows - 1)) / rows, low);
  const auto raw = std::span(raw_).first(narrow);
  numbers(index, lines.first, raw);
  for (int i = 0; i < narrow; ++i) narrow_[i] = (static_cast<float>(raw[i]) - middle) * scale;
  if (lines.part != 0 && lines.second != lines.first) {
    numbers(index, lines.second, raw);
    for (int i = 0; i < narrow; ++i)
      narrow_[i] += lines.part * ((static_cast<float>(raw[i]) - middle) * scale - narrow_[i]);
  }
  if (columns_.empty()) {
    std::copy_n(narrow_.begin(), to.size(), to.begin());
    return;
  }
  for (std::size_t i = 0; i < to.size(); ++i) {
    const Between& pair = columns_[i];
    to[i] = narrow_[pair.first] + pair.part * (narrow_[pair.second] - narrow_[pair.first]);
  }
}

void FrameRows::yuv(int row, std::span<std::uint8_t> to) {
  luma(row);
  colour_difference(1, row, blue_difference_);
  colour_difference(2, row, red_difference_);
  const double green_weight = 1 - meaning_.red - meaning_.blue;
  const auto red = static_cast<float>(2 * (1 - meaning_.red)),
             blue = static_cast<float>(2 * (1 - meaning_.blue));
  const auto green_from_red = static_cast<float>(meaning_.red * red / green_weight);
  const auto green_from_blue = static_cast<float>(meaning_.blue * blue / green_weight);
  for (std::size_t i = 0; i < luma_.size(); ++i) {
    const float y = luma_[i], b = blue_difference_[i], r = red_difference_[i];
    to[3 * i] = round_to_8_bits(y + red * r);
    to[3 * i + 1] = round_to_8_bits(y - green_from_red * r - green_from_blue * b);
    to[3 * i + 2] = round_to_8_bits(y + blue * b);
  }
}

}  // namespace sluice::media
