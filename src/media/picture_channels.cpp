#include "media/picture_channels.h"

extern "C" {
#include <libavutil/frame.h>
}

#include <string_view>
#include <utility>

namespace sluice::media {
namespace {

// a b / 255, rounded
std::uint8_t share(int a, int b) {
  return static_cast<std::uint8_t>((a * b + 127) / 255);
}

Channels channels_of(const FrameRows& rows, InkCoding inks) {
  if (inks == InkCoding::stored || inks == InkCoding::as_ycck) return Channels::cmyk;
  return rows.is_grey() ? Channels::grey : Channels::rgb;
}

std::optional<ColourProfile> profile_of(const AVFrame& frame, Channels channels) {
  const AVFrameSideData* icc = av_frame_get_side_data(&frame, AV_FRAME_DATA_ICC_PROFILE);
  if (icc == nullptr) return std::nullopt;
  return ColourProfile({icc->data, icc->size}, channels);
}

void grey_to_rgb(std::span<const std::uint8_t> grey, std::span<std::uint8_t> rgb) {
  for (std::size_t i = 0; i < grey.size(); ++i) rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = grey[i];
}

// The plain formula, rounded as PIL does: light of the colour minus its share of the black's.
void inks_to_rgb(std::span<const std::uint8_t> inks, std::span<std::uint8_t> rgb) {
  for (std::size_t i = 0; i < inks.size() / 4; ++i) {
    const int light = 255 - inks[4 * i + 3];
    for (int channel = 0; channel < 3; ++channel)
      rgb[3 * i + channel] = static_cast<std::uint8_t>(light - share(inks[4 * i + channel], light));
  }
}

}  // namespace

InkCoding take_ink_coding(const PictureHeader& header, std::span<std::byte> file) {
  constexpr std::byte kYcck{2}, kNothingLibavKnows{1};
  if (!header.cmyk) return InkCoding::none;
  if (header.format != PictureFormat::jpeg) return InkCoding::made_rgb;
  constexpr std::string_view kInks = "CMYK";
  for (std::size_t at : header.component_numbers_at) {
    const std::size_t ink = at < file.size() ? kInks.find(static_cast<char>(file[at])) : kInks.npos;
    if (ink != kInks.npos) file[at] = static_cast<std::byte>(ink + 1);
  }
  if (!header.adobe_transform_at) return InkCoding::stored;
  const std::byte transform = std::exchange(file[*header.adobe_transform_at], kNothingLibavKnows);
  return transform == kYcck ? InkCoding::as_ycck : InkCoding::stored;
}

PictureChannels::PictureChannels(const AVFrame& frame, InkCoding inks, const std::filesystem::path& path)
    : rows_(frame, colour_meaning(frame, Untagged::picture, path), path),
      inks_(inks),
      profile_(profile_of(frame, channels_of(rows_, inks))),
      channels_(static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(channels_of(rows_, inks))),
      plane_(static_cast<std::size_t>(frame.width)) {}

void PictureChannels::row(int row, std::span<std::uint8_t> rgb) {
  if (has_inks()) return inks(row, rgb);
  const bool converts = profile_ && profile_->converts();
  if (rows_.is_grey()) {
    rows_.grey(row, channels_);
    converts ? profile_->to_srgb(channels_, rgb) : grey_to_rgb(channels_, rgb);
  } else if (converts) {
    rows_.rgb(row, channels_);
    profile_->to_srgb(channels_, rgb);
  } else {
    rows_.rgb(row, rgb);
  }
  if (rows_.has_alpha()) put_over_black(row, rgb);
}

void PictureChannels::inks(int row, std::span<std::uint8_t> rgb) {
  if (inks_ == InkCoding::as_ycck) rows_.rgb(row, rgb);
  for (int channel = 0; channel < 4; ++channel) {
    const bool is_in_rgb = inks_ == InkCoding::as_ycck && channel < 3;
    if (!is_in_rgb) rows_.component(channel, row, plane_);
    for (std::size_t i = 0; i < plane_.size(); ++i) {
      const std::uint8_t light = is_in_rgb ? rgb[3 * i + channel] : plane_[i];
      channels_[4 * i + channel] = 255 - light;
    }
  }
  profile_ && profile_->converts() ? profile_->to_srgb(channels_, rgb) : inks_to_rgb(channels_, rgb);
}

void PictureChannels::put_over_black(int row, std::span<std::uint8_t> rgb) {
  rows_.alpha(row, plane_);
  for (std::size_t i = 0; i < plane_.size(); ++i) {
    if (plane_[i] == 255) continue;
    was_clear_ = true;
    for (int channel = 0; channel < 3; ++channel)
      rgb[3 * i + channel] = share(rgb[3 * i + channel], plane_[i]);
  }
}

std::vector<std::string> PictureChannels::told() const {
  std::vector<std::string> told;
  if (rows_.has_many_bits()) told.push_back("more than 8 bits to 8");
  if (inks_ != InkCoding::none && !(profile_ && profile_->converts()))
    told.push_back("CMYK by the plain formula");
  if (!has_inks() && rows_.is_grey()) told.push_back("grey to three channels");
  if (profile_ && !profile_->told().empty()) told.push_back(profile_->told());
  if (was_clear_) told.push_back("alpha over black");
  return told;
}

}  // namespace sluice::media
