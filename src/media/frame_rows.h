#pragma once
// The rows of any software picture of libav as 8-bit numbers: grey, RGB, palettes, YCbCr in any sampling and
// depth. YCbCr is converted in f32 and rounded once; colour samples are interpolated between their places
// (for 4:2:0 in the middle of four pixels that is libjpeg's "fancy upsampling").  More than 8 bits are
// rounded to 8. Borrows the frame.

#include "media/colour_tags.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

struct AVFrame;
struct AVPixFmtDescriptor;

namespace sluice::media {

class FrameRows {
 public:
  // Error(bad_input) names a pixel format that is none of those (floating point, raw sensor data).
  FrameRows(const AVFrame& frame, const ColourMeaning& meaning, const std::filesystem::path& path);

  bool is_grey() const;
  bool has_alpha() const;
  bool has_many_bits() const;  // more than 8

  // A component as it is stored, to 8 bits; `to` has the component's own width.
  void component(int index, int row, std::span<std::uint8_t> to) const;

  void grey(int row, std::span<std::uint8_t> to);   // [width]
  void rgb(int row, std::span<std::uint8_t> to);    // [width][3]
  void alpha(int row, std::span<std::uint8_t> to);  // [width]

 private:
  // Between which two samples a place lies, and how far from the first; the ends are held.
  struct Between {
    int first;
    int second;
    float part;
  };
  static Between between(double at, int count);

  void numbers(int index, int row, std::span<std::uint16_t> to) const;
  void palette_row(int row, int byte, std::span<std::uint8_t> to, int step) const;
  void luma(int row);
  void colour_difference(int index, int row, std::span<float> to);
  void yuv(int row, std::span<std::uint8_t> to);

  const AVFrame& frame_;
  const AVPixFmtDescriptor& format_;
  ColourMeaning meaning_;
  std::vector<std::uint16_t> raw_;
  std::vector<float> luma_, blue_difference_, red_difference_, narrow_;
  std::vector<Between> columns_;  // of every pixel among the colour samples of a row
};

}  // namespace sluice::media
