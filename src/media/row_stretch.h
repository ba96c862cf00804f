#pragma once
// One row of RGB pixels made longer or shorter, bilinear between pixel centres: oblong pixels to square ones.

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::media {

class RowStretch {
 public:
  RowStretch(int from, int to);

  bool is_needed() const { return from_ != to_; }
  void stretch(std::span<const std::uint8_t> rgb, std::span<std::uint8_t> stretched) const;

 private:
  struct Tap {
    int first;
    int second;
    int part;  // of the second, in 256ths
  };
  int from_;
  int to_;
  std::vector<Tap> taps_;
};

}  // namespace sluice::media
