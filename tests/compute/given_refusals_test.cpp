// What is given and cannot be used: refused before any work, with the file or flag, the number and a remedy.
#include "compute/given_world.h"
#include "media/built_pictures.h"
#include "media/png_writer.h"
#include "media/sound_files.h"
#include "media/world.h"
#include "support/synthetic_file.h"

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string half_of(const fs::path& file) {
  const std::string content = file_content(file);
  return content.substr(0, content.size() / 2);
}

// Two pictures of one colour on a page of 16 x 16: just enough to be told from a still one.
std::string two_frames_gif() {
  using namespace std::literals;
  const std::string picture =
      "\x21\xf9\x04\x00\x0a\x00\x00\x00"s
      "\x2c\x00\x00\x00\x00\x02\x00\x02\x00\x00\x02\x02\x44\x0a\x00"s;
  return "GIF89a\x10\x00\x10\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff"s + picture + picture + "\x3b"s;
}

// Every file that a row below names, made once.
const fs::path& files() {
  static const TemporaryFolder folder;
  static const bool made = [] {
    constexpr int kSide = 64, kFrames = 17;
    const media::TestTone tone(34000);
    const media::Mp4Options silent{.width = kSide, .height = kSide, .rate = {24, 1}, .frames = kFrames};
    media::Mp4Options sounding = silent;
    sounding.sound = tone.view();
    media::write_gradients(folder / "no_sound.mp4", silent);
    media::write_gradients(folder / "video.mp4", sounding);
    write_samples(folder / "sound.wav", tones(48000, 0.7, 1));
    media::write_png(folder / "picture.png", media::gradient(kSide, kSide, 0).view());
    SyntheticFile()
        .tensor("video_latents", Dtype::F32, {1, 64, 3, 2, 2})
        .write_to(folder / "latents.safetensors");
    write_file(folder / "tiny.png", media::png_header(1, 1) + media::png_chunk("IEND", ""));
    write_file(folder / "huge.png", media::png_header(20000, 20000) + media::png_chunk("IEND", ""));
    write_file(folder / "moving.gif", two_frames_gif());
    write_file(folder / "cut.png", half_of(folder / "picture.png"));
    const std::string jpeg = media::four_plane_jpeg({.planes = {255, 255, 255, 255}, .adobe_transform = 0});
    write_file(folder / "cut.jpg", jpeg.substr(0, jpeg.size() - 8));
    write_file(folder / "cut.mp4", half_of(folder / "video.mp4"));
    std::string words;
    for (int i = 0; i < 50; ++i) words += "no picture, no video and no sound\n";
    write_file(folder / "words.txt", words);
    write_file(folder / "empty", "");
    fs::create_symlink("loop", folder / "loop");
    // Whole to the last chunk, but its checksums do not agree.
    std::string damaged = file_content(folder / "picture.png");
    damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 0x40);
    write_file(folder / "damaged.png", damaged);
    media::write_bytes(folder / "silent.wav", media::WavFile{}.bytes());
    return true;
  }();
  static_cast<void>(made);
  return folder.path();
}

struct Row {
  const char* name;
  Arguments flags;  // "%/" is files()
  int code;
  std::string message;
  std::string hint;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

Arguments with_files(const Arguments& flags) {
  Arguments words;
  for (std::string word : flags) {
    if (word.starts_with("%/")) word.replace(0, 1, files().string());
    words.push_back(word);
  }
  return words;
}

const Row kPictures[] = {
    {"missing", {"--image", "%/nowhere.png"}, 3, "nowhere.png: no such file", "check the path"},
    {"without_a_name", {"--image", ""}, 2, "--image has an empty value", "leave it out"},
    {"without_a_name_at_a_frame", {"--image", "@0"}, 2, "--image '@0' names no file", "picture.png"},
    {"loop", {"--image", "%/loop"}, 3, "loop: Too many levels of symbolic links", "check the path"},
    {"folder", {"--image", "%/"}, 3, "is a folder, not a file", "inside it"},
    {"empty", {"--image", "%/empty"}, 3, "empty: is an empty file, not a picture", "the picture itself"},
    {"text", {"--image", "%/words.txt"}, 3, "words.txt: is no picture that can be read", "PNG, JPEG"},
    {"one_pixel", {"--image", "%/tiny.png"}, 3, "tiny.png: has 1 x 1 pixels", "larger picture"},
    {"20000_pixels_a_side",
     {"--image", "%/huge.png"},
     3,
     "huge.png: has 20000 x 20000 pixels",
     "scale it down"},
    {"animated", {"--image", "%/moving.gif"}, 3, "moving.gif: is an animation", "--video"},
    {"cut_png", {"--image", "%/cut.png"}, 3, "cut.png: the png picture is cut short or damaged", "again"},
    {"cut_jpeg", {"--image", "%/cut.jpg"}, 3, "cut.jpg: the jpeg picture is cut short or damaged", "again"},
    {"video", {"--image", "%/video.mp4"}, 3, "video.mp4: is a video, not a picture", "--video"},
    {"sound", {"--image", "%/sound.wav"}, 3, "sound.wav: is no picture", "PNG, JPEG"},
    {"weights", {"--image", "%/latents.safetensors"}, 3, "latents.safetensors: is no picture", "PNG, JPEG"},
    {"frame_past_the_end",
     {"--image", "%/picture.png@17"},
     2,
     "picture.png@17: the clip has the frames 0 to 16",
     "from -17 to 16"},
    {"frame_before_the_begin",
     {"--image", "%/picture.png@-18"},
     2,
     "picture.png@-18: the clip has the frames 0 to 16",
     "from -17 to 16"},
    {"frame_no_number",
     {"--image", "%/picture.png@x"},
     2,
     "'x' is no frame and strength",
     "picture.png@-1:0.8"},
    {"frame_with_a_fraction", {"--image", "%/picture.png@1.5"}, 2, "'1.5' is no frame", "picture.png@-1:0.8"},
    {"frame_left_out", {"--image", "%/picture.png@"}, 2, "'' is no frame and strength", "picture.png@-1:0.8"},
    {"strength_above_1",
     {"--image", "%/picture.png@0:1.5"},
     2,
     "1.5 is not between 0 and 1",
     "1 holds fully"},
    {"strength_below_0",
     {"--image", "%/picture.png@0:-0.1"},
     2,
     "-0.1 is not between 0 and 1",
     "0 not at all"},
    {"strength_nan", {"--image", "%/picture.png@0:nan"}, 2, "nan is not between 0 and 1", "1 holds fully"},
    {"strength_no_number",
     {"--image", "%/picture.png@0:abc"},
     2,
     "'0:abc' is no frame and strength",
     "picture.png@-1:0.8"},
    {"strength_left_out", {"--image", "%/picture.png@0:"}, 2, "'0:' is no frame and strength", "-1:0.8"},
    {"fit_unknown",
     {"--image", "%/picture.png", "--fit", "zoom"},
     2,
     "--fit 'zoom' is unknown",
     "crop, pad, stretch"},
    {"crf_too_large",
     {"--image", "%/picture.png", "--image-crf", "52"},
     2,
     "--image-crf 52 is not between 0 and 51",
     "0 to 51"},
};

const Row kVideos[] = {
    {"missing", {"--video", "%/nowhere.mp4"}, 3, "nowhere.mp4: no such file", "check the path"},
    {"picture", {"--video", "%/picture.png"}, 3, "picture.png: is a still picture", "--image"},
    {"without_frames", {"--video", "%/sound.wav"}, 3, "sound.wav: has no video in it", "--audio"},
    {"cut", {"--video", "%/cut.mp4"}, 3, "cut.mp4: is cut short or damaged", "again"},
    {"text", {"--video", "%/words.txt"}, 3, "words.txt: is text, not a video", "mp4"},
    {"empty", {"--video", "%/empty"}, 3, "empty: is an empty file, not a video", "mp4"},
    {"frame_past_the_end", {"--video", "%/video.mp4@17"}, 2, "the clip has the frames 0 to 16", "-17 to 16"},
    {"strength_above_1",
     {"--video", "%/video.mp4@0:2"},
     2,
     "video.mp4: 2 is not between 0 and 1",
     "1 holds fully"},
    {"from_past_its_end",
     {"--video", "%/video.mp4", "--frames-from", "17"},
     2,
     "--frames-from 17: ",
     "from -17 to 16"},
    {"from_before_its_begin",
     {"--video", "%/video.mp4", "--frames-from", "-18"},
     2,
     "video.mp4 has 17 frames at 24 a second",
     "from -17 to 16"},
    {"from_of_nothing",
     {"--frames-from", "-9"},
     2,
     "--frames-from is about the frames of a --video",
     "--video FILE"},
    {"retake_of_nothing",
     {"--retake", "0.1:0.2"},
     2,
     "--retake takes one --video and no --image, not 0 and 0",
     "--video"},
    {"retake_of_two",
     {"--video", "%/video.mp4", "--video", "%/video.mp4", "--retake", "0.1:0.2"},
     2,
     "--retake takes one --video and no --image, not 2 and 0",
     "--video"},
    {"retake_beside_a_picture",
     {"--video", "%/video.mp4", "--image", "%/picture.png", "--retake", "0.1:0.2"},
     2,
     "not 1 and 1",
     "--video"},
    {"retake_behind_the_end",
     {"--video", "%/video.mp4", "--retake", "0.8:0.9"},
     2,
     "--retake 0.8:0.9 is no part of a clip of 0.708 s",
     "from 0 to 0.708"},
    {"retake_backwards",
     {"--video", "%/video.mp4", "--retake", "0.5:0.2"},
     2,
     "--retake 0.5:0.2 is no part",
     "the smaller one first"},
    {"retake_of_no_time",
     {"--video", "%/video.mp4", "--retake", "0.2:0.2"},
     2,
     "0.2:0.2 is no part",
     "smaller"},
    {"retake_before_0",
     {"--video", "%/video.mp4", "--retake=-1:0.2"},
     2,
     "--retake -1:0.2 is no part",
     "from 0"},
    {"retake_nan",
     {"--video", "%/video.mp4", "--retake", "nan:0.2"},
     2,
     "--retake nan:0.2 is no part",
     "from 0"},
    {"retake_no_range", {"--video", "%/video.mp4", "--retake", "0.2"}, 2, "'0.2' is no START:END", "1.5:3"},
    {"retake_three_times",
     {"--video", "%/video.mp4", "--retake", "0:0.2:1"},
     2,
     "'0:0.2:1' is no START:END",
     "1.5:3"},
    {"retake_of_a_part",
     {"--video", "%/video.mp4@8", "--retake", "0.1:0.2"},
     2,
     "video.mp4 gives 9 frames at frame 8 and strength 1 for 17 frames",
     "leave out --frames"},
    {"retake_of_another_length",
     {"--video", "%/video.mp4", "--retake", "0.1:0.2", "--frames", "25"},
     2,
     "video.mp4 gives 17 frames at frame 0 and strength 1 for 25 frames",
     "leave out --frames"},
};

const Row kSounds[] = {
    {"missing", {"--audio", "%/nowhere.wav"}, 3, "nowhere.wav: no such file", "check the path"},
    {"empty", {"--audio", "%/empty"}, 3, "empty: is empty", "WAV, FLAC"},
    {"without_samples", {"--audio", "%/silent.wav"}, 3, "silent.wav: its sound has no samples", "WAV, FLAC"},
    {"video_without_sound", {"--audio", "%/no_sound.mp4"}, 3, "no_sound.mp4: has no sound", "WAV, FLAC"},
    {"picture", {"--audio", "%/picture.png"}, 3, "picture.png: has no sound", "WAV, FLAC"},
    {"text", {"--audio", "%/words.txt"}, 3, "words.txt: has no sound", "WAV, FLAC"},
};

class Refused : public ::testing::TestWithParam<Row> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(Refused, before_any_work_naming_what_and_how) {
  const Row& row = GetParam();

  const Outcome outcome = run(given_clip(with({"-o", folder_ / "clip.mp4"}, with_files(row.flags))));

  EXPECT_THAT(outcome, Refuses(row.code, HasSubstr(row.message), HasSubstr(row.hint)));
  EXPECT_THAT(folder_.names(), IsEmpty());
}

std::string row_name(const ::testing::TestParamInfo<Row>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Picture, Refused, ::testing::ValuesIn(kPictures), row_name);
INSTANTIATE_TEST_SUITE_P(Video, Refused, ::testing::ValuesIn(kVideos), row_name);
INSTANTIATE_TEST_SUITE_P(Sound, Refused, ::testing::ValuesIn(kSounds), row_name);

TEST(Damage, inside_of_what_is_given_is_told_before_the_text_encoder_works) {
  TemporaryFolder folder;

  const Outcome outcome = run(given_clip({"--image", files() / "damaged.png", "-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome, Refuses(3, HasSubstr("damaged.png: "), HasSubstr("again")));
  EXPECT_THAT(outcome.err, ::testing::Not(HasSubstr("layers")));  // of the text phase's progress
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Frames, are_not_written_over_a_picture_that_is_given) {
  TemporaryFolder folder;
  fs::create_directory(folder / "frames");
  fs::copy_file(files() / "picture.png", folder / "frames/frame_00000.png");

  const Outcome outcome = run(given_clip(
      {"--image", folder / "frames/frame_00000.png", "--frames-dir", folder / "frames", "--overwrite"}));

  EXPECT_THAT(outcome,
              Refuses(2, HasSubstr("would be written over what is read"), HasSubstr("--frames-dir")));
  EXPECT_TRUE(same_bytes(folder / "frames/frame_00000.png", files() / "picture.png"));
}

struct Contradiction {
  const char* name;
  Arguments flags;
  std::string message;
};

void PrintTo(const Contradiction& row, std::ostream* out) {
  *out << row.name;
}

class Contradictions : public ::testing::TestWithParam<Contradiction> {
 protected:
  TemporaryFolder folder_;
};

TEST_P(Contradictions, are_refused_naming_both_sides) {
  Arguments words;
  for (std::string word : with_files(GetParam().flags)) {
    if (word.starts_with("=")) word.replace(0, 1, folder_.path().string() + "/");  // an output
    words.push_back(word);
  }

  EXPECT_THAT(run(given_clip(words)), Refuses(2, HasSubstr(GetParam().message)));
  EXPECT_THAT(folder_.names(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Of, Contradictions,
    ::testing::Values(
        Contradiction{"sound_alone_of_a_picture",
                      {"--audio-only", "--image", "%/picture.png", "--wav", "=a.wav"},
                      "--audio-only makes no picture, so none can be given"},
        Contradiction{"sound_alone_of_a_video",
                      {"--audio-only", "--video", "%/video.mp4", "--wav", "=a.wav"},
                      "--audio-only makes no picture, so none can be given"},
        Contradiction{"sound_alone_of_a_sound",
                      {"--audio-only", "--audio", "%/sound.wav", "--wav", "=a.wav"},
                      "--audio-only and --audio contradict each other"},
        Contradiction{"sound_alone_to_mp4",
                      {"--audio-only", "-o", "=a.mp4"},
                      "--audio-only makes no picture, so there is no video to write"},
        Contradiction{"sound_alone_to_frames",
                      {"--audio-only", "--frames-dir", "=frames"},
                      "--audio-only makes no picture, so there is no video to write"},
        Contradiction{"sound_alone_and_none",
                      {"--audio-only", "--no-audio", "--wav", "=a.wav"},
                      "--no-audio and --wav contradict each other"},
        Contradiction{"picture_alone_of_a_sound",
                      {"--video-only", "--audio", "%/sound.wav", "-o", "=a.mp4"},
                      "--video-only leaves the sound out, so the model cannot hear --audio"},
        Contradiction{"picture_alone_to_wav",
                      {"--video-only", "--wav", "=a.wav", "-o", "=a.mp4"},
                      "--video-only makes no sound, so there is none to write"},
        Contradiction{"each_alone", {"--video-only", "--audio-only", "-o", "=a.mp4"}, "excludes"},
        Contradiction{
            "unknown_sampler", {"--sampler", "heun", "-o", "=a.mp4"}, "--sampler 'heun' is unknown"}),
    [](const auto& info) { return std::string(info.param.name); });

// Whatever a name may hold, a file of that whole name is meant.
TEST(Names, of_given_files_may_hold_anything) {
  TemporaryFolder folder;
  const fs::path picture = earlier_clip() / "frames/frame_00000.png";
  const fs::path clip = earlier_clip() / "clip.mp4", sound = earlier_clip() / "clip.wav";
  ASSERT_THAT(run(short_clip({"--image", picture, "--no-audio", "--latents", folder / "plain"})), Succeeds());
  int count = 0;
  auto expect_plain = [&](const std::string& given) {
    SCOPED_TRACE(given);
    const fs::path latents = folder / std::to_string(++count);
    EXPECT_THAT(run(short_clip({"--image", given, "--no-audio", "--latents", latents})), Succeeds());
    EXPECT_TRUE(same_bytes(latents, folder / "plain"));
  };
  for (const char* name : {"закат.png", "夕焼け 写真.png", "it's \"red\".png", "a@0:0.5", "12:30:00.png"}) {
    fs::copy(picture, folder / name);
    expect_plain(folder / name);
  }
  expect_plain((folder / "a@0:0.5").string() + "@0:1");  // with a place behind the name
  expect_plain((folder / "夕焼け 写真.png").string() + "@-17");
  fs::copy(clip, folder / "клип:1@2.mp4");
  fs::copy(sound, folder / "звук 'a':0.5.wav");
  EXPECT_THAT(run(short_clip({"--video", folder / "клип:1@2.mp4", "--audio", folder / "звук 'a':0.5.wav",
                              "-o", folder / "clip.mp4"})),
              Succeeds());
}

}  // namespace
}  // namespace sluice::test
