// contact_sheet -o SHEET.png FOLDER...: the frames that `sluice generate --frames-dir` left in each folder, a
// row of one picture for each folder.
#include "media/contact_sheet.h"
#include <sluice/error.h>
#include "media/png_writer.h"

#include <fmt/format.h>
#include <png.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using sluice::Error;
using sluice::ErrorKind;
using sluice::media::RgbFrame;
using sluice::media::RgbImage;

struct Options {
  std::vector<fs::path> folders;
  fs::path output;
  int every = 1;
  int scale = 1;
};

RgbImage read_png(const fs::path& file) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  RgbImage image;
  if (png_image_begin_read_from_file(&png, file.c_str())) {
    png.format = PNG_FORMAT_RGB;
    image.width = static_cast<int>(png.width);
    image.height = static_cast<int>(png.height);
    image.pixels.resize(PNG_IMAGE_SIZE(png));
    if (png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr)) return image;
  }
  throw Error(ErrorKind::bad_input, fmt::format("{}: {}", file.string(), png.message),
              "give folders that sluice generate --frames-dir made");
}

std::vector<fs::path> frame_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".png") files.push_back(entry.path());
  }
  if (files.empty()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: no PNG frames", folder.string()),
                "give a folder that sluice generate --frames-dir made");
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Each pixel becomes a square: what a small clip really shows, without smoothing.
RgbImage enlarge(const RgbImage& image, int scale) {
  RgbImage large{.height = image.height * scale, .width = image.width * scale, .pixels = {}};
  large.pixels.reserve(image.pixels.size() * scale * scale);
  for (int row = 0; row < large.height; ++row) {
    for (int column = 0; column < large.width; ++column) {
      const auto* pixel = &image.pixels[3 * (std::size_t(row / scale) * image.width + column / scale)];
      large.pixels.insert(large.pixels.end(), pixel, pixel + 3);
    }
  }
  return large;
}

// Rows of different length end in black.
RgbImage sheet_of(const Options& options) {
  std::vector<std::vector<RgbImage>> rows;
  for (const fs::path& folder : options.folders) {
    const auto files = frame_files(folder);
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < files.size(); i += options.every)
      row.push_back(enlarge(read_png(files[i]), options.scale));
  }
  std::size_t columns = 0;
  for (const auto& row : rows) columns = std::max(columns, row.size());
  RgbImage black = rows.front().front();
  std::fill(black.pixels.begin(), black.pixels.end(), 0);
  std::vector<RgbFrame> frames;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < columns; ++i) frames.push_back(i < row.size() ? row[i].view() : black.view());
  }
  return sluice::media::make_contact_sheet(frames, static_cast<int>(columns));
}

}  // namespace

int main(int argc, char** argv) try {
  Options options;
  CLI::App app{"frames of clips in one picture, a row for each folder"};
  app.add_option("folders", options.folders, "folders made by sluice generate --frames-dir")->required();
  app.add_option("-o,--output", options.output, "PNG to write")->required();
  app.add_option("--every", options.every, "take each Nth frame")->check(CLI::Range(1, 1000));
  app.add_option("--scale", options.scale, "enlarge by")->check(CLI::Range(1, 16));
  CLI11_PARSE(app, argc, argv);
  const RgbImage sheet = sheet_of(options);
  sluice::media::write_png(options.output, sheet.view());
  std::printf("%s: %d x %d\n", options.output.c_str(), sheet.width, sheet.height);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "contact_sheet: %s\n  try: %s\n", error.what(), error.hint().c_str());
  return sluice::error_kind_info(error.kind()).exit_code;
}
