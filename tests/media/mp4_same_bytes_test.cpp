#include "media/mp4_writer.h"
#include "world.h"

#include <gtest/gtest.h>
#include <malloc.h>

namespace sluice::media {
namespace {

// While it lives, fresh memory holds this value: the way memory looks that something else has used before.
class MemoryFilledWith {
 public:
  explicit MemoryFilledWith(int value) { mallopt(M_PERTURB, value); }
  ~MemoryFilledWith() { mallopt(M_PERTURB, 0); }
};

std::string written(const std::filesystem::path& file, int width, int value) {
  MemoryFilledWith memory(value);
  Mp4Writer writer(file, {.width = width, .height = 64, .rate = {24, 1}, .frames = 17, .sound = {}});
  for (int i = 0; i < 17; ++i) writer.add_frame(gradient(64, width, i).view());
  writer.finish();
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

TEST(Mp4Writer, writes_the_same_bytes_whatever_lay_in_memory_before) {
  TestFolder folder;

  for (int width : {64, 96, 128, 160}) {
    const std::string first = written(folder / "clip.mp4", width, 1);
    EXPECT_TRUE(first == written(folder / "clip.mp4", width, 85)) << width;
    EXPECT_TRUE(first == written(folder / "clip.mp4", width, 170)) << width;
  }
}

}  // namespace
}  // namespace sluice::media
