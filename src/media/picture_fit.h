#pragma once
// A frame of any size becomes planes of the size the model works at, as numbers in [-1, 1].

#include "media/rgb_frame.h"

#include <span>
#include <string>

namespace sluice::media {

enum class Fit {
  crop,     // scaled until it covers the size, what is over is cut at both sides alike; the reference's way
  pad,      // scaled until it fits inside, black around it
  stretch,  // both sides by themselves
};

struct FitSize {
  int width = 0;
  int height = 0;
};

// planes: [3][height][width], pixel / 127.5 - 1 after bilinear interpolation between pixel centres without
// antialiasing (torch's interpolate, align_corners off); no scaled picture is kept.  Sizes after scaling are
// rounded up (crop, as the reference) or down, at least 1 (pad).  Error(internal) for sizes that do
// not belong together.
void fit_picture(const RgbFrame& picture, Fit fit, FitSize size, std::span<float> planes);

// How the aspect changes: "1920x1080 to 768x512: cut 151 pixels left and right" (of the picture's own; where
// the sides differ by one, the mean), "...: black 20 pixels top and bottom" (of the size); empty where
// nothing is lost.
std::string fit_note(FitSize from, Fit fit, FitSize to);

}  // namespace sluice::media
