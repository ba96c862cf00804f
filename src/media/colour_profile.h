#pragma once
// The colour profile that a picture carries (ICC), as a conversion of its rows to sRGB (perceptual intent;
// with the tables that most profiles have it is the relative colorimetric one).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace sluice::media {

enum class Channels { grey = 1, rgb = 3, cmyk = 4 };

class ColourProfile {
 public:
  // What to do with `icc` on rows of `channels`.
  ColourProfile(std::span<const std::uint8_t> icc, Channels channels);
  ~ColourProfile();
  ColourProfile(ColourProfile&&) noexcept;
  ColourProfile(const ColourProfile&) = delete;
  ColourProfile& operator=(const ColourProfile&) = delete;
  ColourProfile& operator=(ColourProfile&&) = delete;

  // Whether to_srgb() is to be called: not where the profile is sRGB itself (no colour moves by more than one
  // level), cannot be read or is for other channels.
  bool converts() const { return transform_ != nullptr; }

  // "colour profile 'Display P3' to sRGB", "colour profile left out: …"; empty for sRGB.
  const std::string& told() const { return told_; }

  // `pixels` [width][channels] to [width][3].  CMYK: 255 is full ink.
  void to_srgb(std::span<const std::uint8_t> pixels, std::span<std::uint8_t> rgb) const;

 private:
  struct FreeTransform {
    void operator()(void* transform) const;
  };
  std::unique_ptr<void, FreeTransform> transform_;
  Channels channels_;
  std::string told_;
};

}  // namespace sluice::media
