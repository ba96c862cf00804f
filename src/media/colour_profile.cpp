#include "media/colour_profile.h"

#include "base/text.h"

#include <fmt/format.h>
#include <lcms2.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

namespace sluice::media {
namespace {

struct CloseProfile {
  void operator()(void* profile) const { cmsCloseProfile(profile); }
};
using ProfilePtr = std::unique_ptr<void, CloseProfile>;

std::string description(cmsHPROFILE profile) {
  const auto length = [&](char* to, cmsUInt32Number size) {
    return cmsGetProfileInfoASCII(profile, cmsInfoDescription, "en", "US", to, size);
  };
  std::string text(length(nullptr, 0), '\0');
  if (!text.empty()) length(text.data(), static_cast<cmsUInt32Number>(text.size()));
  text.resize(std::min(text.size(), text.find('\0')));
  return text.empty() ? "without a name" : in_quotes(text);
}

cmsColorSpaceSignature space_of(Channels channels) {
  switch (channels) {
    case Channels::grey:
      return cmsSigGrayData;
    case Channels::rgb:
      return cmsSigRgbData;
    case Channels::cmyk:
      return cmsSigCmykData;
  }
  return cmsSigRgbData;
}

cmsUInt32Number layout_of(Channels channels) {
  switch (channels) {
    case Channels::grey:
      return TYPE_GRAY_8;
    case Channels::rgb:
      return TYPE_RGB_8;
    case Channels::cmyk:
      return TYPE_CMYK_8;
  }
  return TYPE_RGB_8;
}

// A grid over all colours.
bool moves_colours(cmsHTRANSFORM transform, Channels channels) {
  constexpr int kSteps = 9;
  for (int place = 0; place < kSteps * kSteps * kSteps; ++place) {
    std::array<std::uint8_t, 3> before{}, after{};
    for (int channel = 0, rest = place; channel < 3; ++channel, rest /= kSteps)
      before[channel] = static_cast<std::uint8_t>(rest % kSteps * 255 / (kSteps - 1));
    if (channels == Channels::grey) before.fill(static_cast<std::uint8_t>(place % 256));
    cmsDoTransform(transform, before.data(), after.data(), 1);
    for (int channel = 0; channel < 3; ++channel)
      if (std::abs(before[channel] - after[channel]) > 1) return true;
  }
  return false;
}

}  // namespace

void ColourProfile::FreeTransform::operator()(void* transform) const {
  cmsDeleteTransform(transform);
}

ColourProfile::~ColourProfile() = default;
ColourProfile::ColourProfile(ColourProfile&&) noexcept = default;

ColourProfile::ColourProfile(std::span<const std::uint8_t> icc, Channels channels) : channels_(channels) {
  const ProfilePtr profile(cmsOpenProfileFromMem(icc.data(), static_cast<cmsUInt32Number>(icc.size())));
  if (profile == nullptr) {
    told_ = "colour profile left out: it cannot be read";
    return;
  }
  const std::string name = description(profile.get());
  if (cmsGetColorSpace(profile.get()) != space_of(channels)) {
    told_ = fmt::format("colour profile {} left out: it is for other channels than the picture has", name);
    return;
  }
  const ProfilePtr srgb(cmsCreate_sRGBProfile());
  transform_.reset(
      cmsCreateTransform(profile.get(), layout_of(channels), srgb.get(), TYPE_RGB_8, INTENT_PERCEPTUAL, 0));
  if (transform_ == nullptr) {
    told_ = fmt::format("colour profile {} left out: it has no way to sRGB", name);
  } else if (channels != Channels::cmyk && !moves_colours(transform_.get(), channels)) {
    transform_.reset();
  } else {
    told_ = fmt::format("colour profile {} to sRGB", name);
  }
}

void ColourProfile::to_srgb(std::span<const std::uint8_t> pixels, std::span<std::uint8_t> rgb) const {
  cmsDoTransform(transform_.get(), pixels.data(), rgb.data(),
                 static_cast<cmsUInt32Number>(pixels.size() / static_cast<std::size_t>(channels_)));
}

}  // namespace sluice::media
