#include "media/yuv420.h"

#include <array>

namespace sluice::media {
namespace {

// Fixed point with 20 bits: a coefficient is off by at most 2^-21, a code value by 255 * 3 * 2^-21 < 0.0004.
constexpr int kBits = 20;

constexpr std::int32_t fixed(double x) {
  double scaled = x * (1 << kBits);
  return static_cast<std::int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

using Weights = std::array<std::int32_t, 3>;  // of R, G, B in 0 … 255

constexpr double kRed = 0.2126, kGreen = 0.7152, kBlue = 0.0722;
constexpr double kLuma = 219.0 / 255.0;
constexpr double kBlueDifference = 224.0 / 255.0 / 1.8556;  // 1.8556 = 2 (1 - kBlue)
constexpr double kRedDifference = 224.0 / 255.0 / 1.5748;   // 1.5748 = 2 (1 - kRed)

constexpr Weights kY = {fixed(kRed * kLuma), fixed(kGreen* kLuma), fixed(kBlue* kLuma)};
constexpr Weights kCb = {fixed(-kRed * kBlueDifference), fixed(-kGreen* kBlueDifference),
                         fixed((1 - kBlue) * kBlueDifference)};
constexpr Weights kCr = {fixed((1 - kRed) * kRedDifference), fixed(-kGreen* kRedDifference),
                         fixed(-kBlue* kRedDifference)};

std::int32_t weigh(const Weights& weights, std::int32_t red, std::int32_t green, std::int32_t blue) {
  return weights[0] * red + weights[1] * green + weights[2] * blue;
}

void luma_row(const std::uint8_t* rgb, int width, std::uint8_t* y) {
  constexpr std::int32_t kOffset = (16 << kBits) + (1 << (kBits - 1));
  for (int x = 0; x < width; ++x) {
    y[x] =
        static_cast<std::uint8_t>((weigh(kY, rgb[3 * x], rgb[3 * x + 1], rgb[3 * x + 2]) + kOffset) >> kBits);
  }
}

// Two rows of RGB make one of each chroma plane.  The sum of four pixels is weighed and divided once.
void chroma_row(const std::uint8_t* above, const std::uint8_t* below, int width, std::uint8_t* cb,
                std::uint8_t* cr) {
  constexpr std::int32_t kOffset = (128 << (kBits + 2)) + (1 << (kBits + 1));
  for (int x = 0; x < width / 2; ++x) {
    const std::uint8_t* a = above + 6 * x;
    const std::uint8_t* b = below + 6 * x;
    std::int32_t red = a[0] + a[3] + b[0] + b[3];
    std::int32_t green = a[1] + a[4] + b[1] + b[4];
    std::int32_t blue = a[2] + a[5] + b[2] + b[5];
    cb[x] = static_cast<std::uint8_t>((weigh(kCb, red, green, blue) + kOffset) >> (kBits + 2));
    cr[x] = static_cast<std::uint8_t>((weigh(kCr, red, green, blue) + kOffset) >> (kBits + 2));
  }
}

}  // namespace

void to_yuv420(const RgbFrame& frame, const Yuv420Planes& planes) {
  std::ptrdiff_t row_bytes = std::ptrdiff_t{3} * frame.width;
  for (int row = 0; row < frame.height; ++row) {
    luma_row(frame.pixels.data() + row * row_bytes, frame.width, planes.y.data + row * planes.y.stride);
  }
  for (int row = 0; row < frame.height / 2; ++row) {
    const std::uint8_t* above = frame.pixels.data() + 2 * row * row_bytes;
    chroma_row(above, above + row_bytes, frame.width, planes.cb.data + row * planes.cb.stride,
               planes.cr.data + row * planes.cr.stride);
  }
}

}  // namespace sluice::media
