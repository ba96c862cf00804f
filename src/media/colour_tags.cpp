#include "media/colour_tags.h"

#include <sluice/error.h>

#include <fmt/format.h>
extern "C" {
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
}

#include <optional>
#include <string_view>

namespace sluice::media {
namespace {

struct Matrix {
  double red;
  double blue;
  std::string_view name;
};

constexpr Matrix kBt601{0.299, 0.114, "BT.601"}, kBt709{0.2126, 0.0722, "BT.709"},
    kBt2020{0.2627, 0.0593, "BT.2020"}, kSmpte240{0.212, 0.087, "SMPTE 240M"}, kFcc{0.30, 0.11, "FCC"};

bool is_yuv(const AVFrame& frame) {
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  return format != nullptr && (format->flags & AV_PIX_FMT_FLAG_RGB) == 0 && format->nb_components >= 3;
}

std::optional<Matrix> tagged_matrix(const AVFrame& frame, const std::filesystem::path& path) {
  switch (frame.colorspace) {
    case AVCOL_SPC_BT709:
      return kBt709;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M:
      return kBt601;
    case AVCOL_SPC_BT2020_NCL:
      return kBt2020;
    case AVCOL_SPC_SMPTE240M:
      return kSmpte240;
    case AVCOL_SPC_FCC:
      return kFcc;
    case AVCOL_SPC_UNSPECIFIED:
    case AVCOL_SPC_RESERVED:
      return std::nullopt;
    default:
      break;
  }
  const char* name = av_color_space_name(frame.colorspace);
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: has colours by the matrix '{}', which is not supported", path.string(),
                          name == nullptr ? "unknown" : name),
              "convert it to BT.709 first");
}

void refuse_hdr(const AVFrame& frame, const std::filesystem::path& path) {
  const bool is_pq = frame.color_trc == AVCOL_TRC_SMPTE2084;
  if (!is_pq && frame.color_trc != AVCOL_TRC_ARIB_STD_B67) return;
  throw Error(
      ErrorKind::bad_input,
      fmt::format("{}: has HDR colours ({}), which are not supported", path.string(), is_pq ? "PQ" : "HLG"),
      "convert it to SDR with BT.709 first");
}

Matrix untagged_matrix(const AVFrame& frame, Untagged untagged) {
  constexpr int kHighDefinition = 720;  // lines
  return untagged == Untagged::video && frame.height >= kHighDefinition ? kBt709 : kBt601;
}

bool has_full_range(const AVFrame& frame, Untagged untagged) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
      return true;
    default:
      break;
  }
  if (frame.color_range == AVCOL_RANGE_UNSPECIFIED) return untagged == Untagged::picture;
  return frame.color_range == AVCOL_RANGE_JPEG;
}

void place_colour_samples(const AVFrame& frame, Untagged untagged, ColourMeaning& meaning) {
  switch (frame.chroma_location) {
    case AVCHROMA_LOC_LEFT:
      meaning.left = 0;
      break;
    case AVCHROMA_LOC_TOPLEFT:
      meaning.left = meaning.top = 0;
      break;
    case AVCHROMA_LOC_TOP:
      meaning.top = 0;
      break;
    case AVCHROMA_LOC_BOTTOMLEFT:
      meaning.left = 0;
      [[fallthrough]];
    case AVCHROMA_LOC_BOTTOM:
      meaning.top = 1;
      break;
    case AVCHROMA_LOC_CENTER:
      break;
    default:
      meaning.left = untagged == Untagged::video ? 0 : 0.5;
      break;
  }
}

}  // namespace

ColourMeaning colour_meaning(const AVFrame& frame, Untagged untagged, const std::filesystem::path& path) {
  refuse_hdr(frame, path);
  ColourMeaning meaning;
  meaning.full_range = has_full_range(frame, untagged);
  if (!is_yuv(frame)) return meaning;
  const std::optional<Matrix> tagged = tagged_matrix(frame, path);
  const Matrix matrix = tagged.value_or(untagged_matrix(frame, untagged));
  meaning.red = matrix.red;
  meaning.blue = matrix.blue;
  place_colour_samples(frame, untagged, meaning);
  if (!tagged && untagged == Untagged::video)
    meaning.told = fmt::format("no colour tags: taken as {} for its {} lines", matrix.name, frame.height);
  if (matrix.name == kBt2020.name) meaning.told = "BT.2020 colours shown with BT.709's primaries";
  return meaning;
}

}  // namespace sluice::media
