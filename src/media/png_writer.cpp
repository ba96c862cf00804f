#include "media/png_writer.h"

#include <sluice/error.h>
#include "base/file.h"
#include "base/output_name.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

namespace sluice::media {
namespace {

namespace fs = std::filesystem;

// As frame_file_name() makes them: "frame_", five or more digits, ".png".
bool is_frame_file_name(std::string_view name) {
  constexpr std::string_view kBefore = "frame_", kAfter = ".png";
  if (name.size() < kBefore.size() + 5 + kAfter.size() || !name.starts_with(kBefore) ||
      !name.ends_with(kAfter)) {
    return false;
  }
  std::string_view digits = name.substr(kBefore.size(), name.size() - kBefore.size() - kAfter.size());
  return std::all_of(digits.begin(), digits.end(),
                     [](unsigned char letter) { return std::isdigit(letter) != 0; });
}

std::vector<fs::path> frame_files(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (is_frame_file_name(entry->path().filename().string())) found.push_back(entry->path());
  }
  if (failed)
    throw Error(ErrorKind::io, fmt::format("{}: cannot list: {}", folder.string(), failed.message()));
  return found;
}

void write_whole(TemporaryFile& file, std::span<const std::byte> bytes) {
  write_all(File::open_for_writing(file.path()), bytes, file.target());
}

}  // namespace

std::vector<std::byte> encode_png(const RgbFrame& frame) {
  if (!frame.is_whole()) {
    throw Error(ErrorKind::internal, fmt::format("a picture of {} x {} with {} bytes", frame.width,
                                                 frame.height, frame.pixels.size()));
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(frame.width);
  image.height = static_cast<png_uint_32>(frame.height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<std::byte> bytes(size);
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, frame.pixels.data(), 0, nullptr) == 0) {
    throw Error(ErrorKind::internal, fmt::format("libpng: {}", image.message));
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const fs::path& target, const RgbFrame& frame) {
  std::vector<std::byte> bytes = encode_png(frame);
  TemporaryFile file(target);
  write_whole(file, bytes);
  file.commit();
}

std::string frame_file_name(std::int64_t index) {
  return fmt::format("frame_{:05}.png", index);
}

void check_frame_folder(const fs::path& folder, Existing existing) {
  std::error_code ignored;
  if (!fs::exists(folder, ignored)) {
    // A folder is made where a file could be; "frames/" means the same as "frames".
    check_target(without_slash(folder), existing);
    return;
  }
  if (!fs::is_directory(folder, ignored)) {
    throw Error(ErrorKind::usage, fmt::format("{}: is no folder", folder.string()),
                "give a folder for the frames");
  }
  std::size_t frames = frame_files(folder).size();
  if (frames > 0 && existing == Existing::refuse) {
    throw Error(ErrorKind::usage, fmt::format("{}: holds frames already ({})", folder.string(), frames),
                "give --overwrite, or another folder");
  }
  check_target(folder / frame_file_name(0), Existing::overwrite);
}

PngFolderWriter::PngFolderWriter(fs::path folder, Existing existing) : folder_(std::move(folder)) {
  check_frame_folder(folder_, existing);
  std::error_code failed;
  made_folder_ = fs::create_directory(folder_, failed);
  if (failed) {
    throw Error(
        ErrorKind::io,
        fmt::format("{}: cannot make the folder: {}", folder_.string(), system_reason(failed.value())),
        system_remedy(failed.value()));
  }
}

PngFolderWriter::~PngFolderWriter() {
  frames_.clear();
  std::error_code ignored;
  if (made_folder_) fs::remove(folder_, ignored);  // only an empty folder goes
}

void PngFolderWriter::add_frame(const RgbFrame& frame) {
  std::vector<std::byte> bytes = encode_png(frame);
  frames_.emplace_back(folder_ / frame_file_name(static_cast<std::int64_t>(frames_.size())));
  write_whole(frames_.back(), bytes);
}

void PngFolderWriter::finish() {
  for (TemporaryFile& frame : frames_) frame.commit();
  std::vector<fs::path> stale = frame_files(folder_);
  std::erase_if(stale, [this](const fs::path& file) {
    return std::any_of(frames_.begin(), frames_.end(), [&](const TemporaryFile& frame) {
      return frame.target().filename() == file.filename();
    });
  });
  for (const fs::path& file : stale) fs::remove(file);
  frames_.clear();
}

}  // namespace sluice::media
