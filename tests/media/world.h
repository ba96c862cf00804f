#pragma once
// What the media tests build their world from: a folder that goes away, pictures and sounds of a known
// content.

#include <sluice/error.h>
#include "media/mp4_writer.h"
#include "media/rgb_frame.h"
#include "media/stereo_wave.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace sluice::media {

class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice-media-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path_)) {
      found.push_back(entry.path().filename().string());
    }
    return found;
  }

 private:
  std::filesystem::path path_;
};

struct TestImage {
  int height;
  int width;
  std::vector<std::uint8_t> pixels;

  TestImage(int image_height, int image_width)
      : height(image_height), width(image_width), pixels(std::size_t{3} * image_height * image_width) {}

  std::uint8_t& at(int row, int column, int channel) {
    return pixels[3 * (static_cast<std::size_t>(row) * width + column) + channel];
  }
  void fill(int top, int left, int side, std::array<std::uint8_t, 3> colour) {
    for (int row = top; row < top + side; ++row) {
      for (int column = left; column < left + side; ++column) {
        for (int channel = 0; channel < 3; ++channel) at(row, column, channel) = colour[channel];
      }
    }
  }
  RgbFrame view() const { return {.height = height, .width = width, .pixels = pixels}; }
};

// A gradient that moves by `step`, so that no two frames are alike.
inline TestImage gradient(int height, int width, int step) {
  TestImage image(height, width);
  for (int row = 0; row < height; ++row) {
    for (int column = 0; column < width; ++column) {
      image.at(row, column, 0) = static_cast<std::uint8_t>(2 * column + 7 * step);
      image.at(row, column, 1) = static_cast<std::uint8_t>(3 * row + 5 * step);
      image.at(row, column, 2) = static_cast<std::uint8_t>(column + row);
    }
  }
  return image;
}

// A tone of 440 Hz at the left and 660 Hz at the right.
struct TestTone {
  std::vector<float> left, right;
  int sample_rate;

  explicit TestTone(std::int64_t samples, int rate = 48000) : sample_rate(rate) {
    for (std::int64_t i = 0; i < samples; ++i) {
      double seconds = static_cast<double>(i) / rate;
      left.push_back(static_cast<float>(0.5 * std::sin(2 * M_PI * 440 * seconds)));
      right.push_back(static_cast<float>(0.5 * std::sin(2 * M_PI * 660 * seconds)));
    }
  }
  StereoWave view() const { return {.sample_rate = sample_rate, .left = left, .right = right}; }
};

// What the vocoder makes for a clip: 480 (4L - 3) samples for L = 25 F / r latents.
inline std::int64_t vocoder_samples(std::int64_t frames, Rational rate) {
  auto latents = std::llrint(static_cast<double>(frames) / rate.value() * 25);
  return latents < 1 ? 0 : 480 * (4 * latents - 3);
}

inline void write_gradients(const std::filesystem::path& target, const Mp4Options& options) {
  Mp4Writer writer(target, options);
  for (int i = 0; i < options.frames; ++i)
    writer.add_frame(gradient(options.height, options.width, i).view());
  writer.finish();
}

inline std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs `act` and gives the Error it throws; fails the test when it throws none.
template <typename Act>
Error error_of(Act act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return Error(ErrorKind::internal, "nothing was thrown");
}

}  // namespace sluice::media
