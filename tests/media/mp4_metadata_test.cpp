#include "media/mp4_writer.h"
#include "media/probe.h"
#include "world.h"

#include <gmock/gmock.h>

namespace sluice::media {
namespace {

using Tags = std::map<std::string, std::string>;

Tags round_trip(const Tags& tags) {
  TestFolder folder;
  write_gradients(folder / "clip.mp4",
                  {.width = 64, .height = 64, .rate = {24, 1}, .frames = 1, .sound = {}, .metadata = tags});
  return read_metadata(folder / "clip.mp4");
}

TEST(Mp4Metadata, comes_back_as_given) {
  Tags tags = {{"title", "a lake at dawn"},
               {"comment", "made by sluice"},
               {"description", "x"},
               {"sluice.seed", "42"},
               {"sluice.fps", "24000/1001"}};

  EXPECT_EQ(round_trip(tags), tags);
}

TEST(Mp4Metadata, keeps_a_long_prompt_with_quotes_and_newlines_byte_for_byte) {
  std::string prompt;
  while (prompt.size() < 10 * 1024) {
    prompt += "She says: \"it's late\";\n\tback\\slash = {json: [1, 2]} 夜の湖 🌊 #%&\r\n";
  }
  Tags tags = {{"sluice.prompt", prompt},
               {"sluice.request", "{\"prompt\":\"" + std::string(20'000, 'x') + "\"}"}};

  EXPECT_EQ(round_trip(tags), tags);
}

TEST(Mp4Metadata, is_empty_when_none_is_given) {
  EXPECT_EQ(round_trip({}), Tags{});
}

TEST(Mp4Metadata, never_names_libav_or_a_time) {
  TestFolder folder;
  write_gradients(folder / "clip.mp4",
                  {.width = 64, .height = 64, .rate = {24, 1}, .frames = 1, .sound = {}});

  std::string bytes = bytes_of(folder / "clip.mp4");

  EXPECT_EQ(bytes.find("Lav"), std::string::npos);
  EXPECT_EQ(probe(folder / "clip.mp4").metadata.count("creation_time"), 0u);
}

TEST(Probe, names_a_file_that_is_missing) {
  Error error = error_of([] { probe("/no/such/clip.mp4"); });

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("/no/such/clip.mp4"));
}

TEST(Probe, refuses_what_is_no_media_file) {
  TestFolder folder;
  std::ofstream(folder / "text.mp4") << std::string(5000, 'a');

  Error error = error_of([&] { probe(folder / "text.mp4"); });

  EXPECT_EQ(error.kind(), ErrorKind::bad_input);
  EXPECT_THAT(error.what(), ::testing::HasSubstr("text.mp4: is no readable media file"));
}

}  // namespace
}  // namespace sluice::media
