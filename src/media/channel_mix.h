#pragma once
// From the channels of a file to two: mono fills both, two stay, more are mixed down with the matrix that
// ffmpeg has for them (centre and surround at -3 dB, no low-frequency effects, scaled so that nothing clips).
// Immutable: any thread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

struct AVChannelLayout;
struct AVFrame;

namespace sluice::media {

class ChannelMix {
 public:
  // None where there is no matrix: channels that are no loudspeakers, or too many.  Channels without names
  // count as the layout that is usual for so many.
  static std::optional<ChannelMix> to_stereo(const AVChannelLayout& layout);

  int channels() const { return static_cast<int>(left_.size()); }

  // "mono in both channels", "5.1 mixed down to stereo"; empty: as they are.
  const std::string& conversion() const { return conversion_; }

  // Appends what a frame of decoded sound becomes; integer samples of n bits are divided by 2^(n-1).
  void append(const AVFrame& frame, std::vector<float>& left, std::vector<float>& right) const;

 private:
  ChannelMix(std::vector<double> left, std::vector<double> right, std::string conversion);

  std::vector<double> left_, right_;  // weight of each channel
  std::string conversion_;
};

}  // namespace sluice::media
