#pragma once
// What the numbers of a libav picture mean: matrix, range and where colour samples lie.  Decided once a
// stream from its tags; where they say nothing the caller's rule holds, and the answer tells that it was
// used.

#include <filesystem>
#include <string>

struct AVFrame;

namespace sluice::media {

struct ColourMeaning {
  double red = 0.299;  // weights of luma; green has the rest
  double blue = 0.114;
  bool full_range = true;
  double left = 0.5;  // of a colour sample that serves two columns: 0 on the first, 0.5 between both
  double top = 0.5;
  std::string told;  // what was assumed: "no colour tags: taken as BT.709"; empty where the file says all

  bool operator==(const ColourMeaning&) const = default;
};

enum class Untagged {
  picture,  // as JPEG: BT.601, full range, colour between the pixels
  video,    // BT.709 from 720 lines on, else BT.601; limited range; colour on the left pixel
};

// Error(bad_input) that names what sluice cannot show: HDR transfers (PQ, HLG) and rare matrices.
ColourMeaning colour_meaning(const AVFrame& frame, Untagged untagged, const std::filesystem::path& path);

}  // namespace sluice::media
