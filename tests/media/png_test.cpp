#include "media/contact_sheet.h"
#include "media/png_writer.h"
#include "world.h"

#include <gmock/gmock.h>
#include <png.h>

namespace sluice::media {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TestImage read_png(const std::filesystem::path& path) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&image, path.c_str()) == 0) throw std::runtime_error(image.message);
  EXPECT_EQ(image.format, static_cast<png_uint_32>(PNG_FORMAT_RGB));
  TestImage read(static_cast<int>(image.height), static_cast<int>(image.width));
  png_image_finish_read(&image, nullptr, read.pixels.data(), 0, nullptr);
  return read;
}

TEST(Png, comes_back_pixel_for_pixel) {
  TestFolder folder;
  TestImage image = gradient(33, 17, 5);
  write_png(folder / "画 \"1\".png", image.view());

  TestImage read = read_png(folder / "画 \"1\".png");

  EXPECT_EQ(read.height, 33);
  EXPECT_EQ(read.width, 17);
  EXPECT_EQ(read.pixels, image.pixels);
}

TEST(Png, is_the_same_bytes_for_the_same_pixels) {
  EXPECT_EQ(encode_png(gradient(64, 96, 1).view()), encode_png(gradient(64, 96, 1).view()));
}

void write_folder(const std::filesystem::path& folder, int frames, Existing existing, int first_step = 0) {
  PngFolderWriter writer(folder, existing);
  for (int i = 0; i < frames; ++i) writer.add_frame(gradient(32, 32, first_step + i).view());
  writer.finish();
}

TEST(PngFolder, holds_the_frames_by_number) {
  TestFolder folder;
  write_folder(folder / "frames", 3, Existing::refuse);

  EXPECT_THAT(folder.names(),
              UnorderedElementsAre("frames", "frame_00000.png", "frame_00001.png", "frame_00002.png"));
  EXPECT_EQ(read_png(folder / "frames/frame_00002.png").pixels, gradient(32, 32, 2).pixels);
}

TEST(PngFolder, refuses_a_folder_that_holds_frames) {
  TestFolder folder;
  write_folder(folder / "frames", 2, Existing::refuse);

  Error error = error_of([&] { PngFolderWriter(folder / "frames", Existing::refuse); });

  EXPECT_EQ(error.kind(), ErrorKind::usage);
  EXPECT_THAT(error.what(), HasSubstr("frames: holds frames already (2)"));
  EXPECT_THAT(error.hint(), HasSubstr("--overwrite"));
}

TEST(PngFolder, takes_a_folder_that_holds_other_files_and_keeps_them) {
  TestFolder folder;
  std::ofstream(folder / "notes.txt") << "mine";
  write_folder(folder.path(), 1, Existing::refuse);

  EXPECT_THAT(folder.names(), UnorderedElementsAre("notes.txt", "frame_00000.png"));
}

TEST(PngFolder, overwrites_a_longer_clip_without_leaving_its_end) {
  TestFolder folder;
  write_folder(folder / "frames/", 5, Existing::refuse);
  write_folder(folder / "frames/", 2, Existing::overwrite, 10);

  EXPECT_THAT(folder.names(), UnorderedElementsAre("frames", "frame_00000.png", "frame_00001.png"));
  EXPECT_EQ(read_png(folder / "frames/frame_00001.png").pixels, gradient(32, 32, 11).pixels);
}

TEST(PngFolder, leaves_nothing_when_the_writer_is_dropped) {
  TestFolder folder;
  {
    PngFolderWriter writer(folder / "frames", Existing::refuse);
    writer.add_frame(gradient(32, 32, 0).view());
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(PngFolder, refuses_a_file_and_a_missing_parent) {
  TestFolder folder;
  std::ofstream(folder / "file") << "x";

  EXPECT_EQ(error_of([&] { check_frame_folder(folder / "file", Existing::overwrite); }).kind(),
            ErrorKind::usage);
  EXPECT_EQ(error_of([&] { check_frame_folder(folder / "none/frames", Existing::refuse); }).kind(),
            ErrorKind::usage);
  EXPECT_EQ(error_of([&] { check_frame_folder(folder / "none/frames/", Existing::refuse); }).kind(),
            ErrorKind::usage);
}

TEST(ContactSheet, tiles_frames_in_reading_order_and_leaves_the_rest_black) {
  std::vector<TestImage> images;
  for (std::uint8_t shade : {10, 20, 30}) {
    images.emplace_back(2, 3);
    std::fill(images.back().pixels.begin(), images.back().pixels.end(), shade);
  }
  std::vector<RgbFrame> frames = {images[0].view(), images[1].view(), images[2].view()};

  RgbImage sheet = make_contact_sheet(frames, 2);

  auto red = [&](int row, int column) { return sheet.pixels[3 * (row * sheet.width + column)]; };
  EXPECT_EQ(sheet.height, 4);
  EXPECT_EQ(sheet.width, 6);
  EXPECT_EQ(red(1, 2), 10);
  EXPECT_EQ(red(0, 3), 20);
  EXPECT_EQ(red(3, 0), 30);
  EXPECT_EQ(red(2, 5), 0);
}

TEST(ContactSheet, refuses_frames_of_different_sizes) {
  TestImage a(2, 2), b(2, 4);
  std::vector<RgbFrame> frames = {a.view(), b.view()};

  EXPECT_EQ(error_of([&] { make_contact_sheet(frames, 2); }).kind(), ErrorKind::internal);
}

}  // namespace
}  // namespace sluice::media
