#pragma once
// Frames as the program wrote them, and pictures to give it: PNG files by libpng alone, whatever sluice's own
// reader thinks of them.

#include <cstdint>
#include <filesystem>
#include <vector>

namespace sluice::test {

struct Frame {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;  // [height][width][3]
};

// Fails the test that calls it where there is no such PNG.
Frame read_frame(const std::filesystem::path& png);
std::vector<Frame> read_frames(const std::filesystem::path& folder);  // frame_00000.png, …

// Peak signal to noise in dB, at most 99; of several frames over all of them.
double psnr(const Frame& one, const Frame& other);
double psnr(const std::vector<Frame>& some, const std::vector<Frame>& others);

}  // namespace sluice::test
