// Where the output goes is checked before any work.
#include "compute/world.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

namespace sluice::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(Target, must_not_exist_unless_it_may_be_replaced) {
  TemporaryFolder folder;
  const Arguments command = with(fixture_clip(), {"-o", folder / "clip.mp4", "--trace", folder / "trace"});
  for (const char* name : {"clip.mp4", "trace"}) write_file(folder / name, "earlier");

  EXPECT_THAT(run(command), Refuses(2, HasSubstr("clip.mp4: exists already"), HasSubstr("--overwrite")));
  EXPECT_EQ(file_content(folder / "clip.mp4"), "earlier");
  EXPECT_THAT(run(with(command, {"--overwrite"})), Succeeds());

  EXPECT_GT(fs::file_size(folder / "clip.mp4"), 1000u);
  EXPECT_THAT(folder.names(), UnorderedElementsAre("clip.mp4", "trace"));
}

TEST(Target, must_be_a_file_in_a_folder_that_is_there) {
  TemporaryFolder folder;
  ::mkfifo((folder / "fifo").c_str(), 0600);
  write_file(folder / "file", "");
  auto refused = [&](const std::string& target, const std::string& message, const std::string& hint) {
    EXPECT_THAT(run(with(fixture_clip(), {"-o", target})),
                Refuses(2, HasSubstr(target + ": " + message), HasSubstr(hint)));
  };

  refused(folder / "missing/clip.mp4", "its folder", "create the folder first");
  refused(folder / "file/clip.mp4", "its folder", "create the folder first");
  refused(folder.path(), "is a folder", "add a file name");
  refused(folder / "", "is a folder", "add a file name");
  refused(folder / "fifo", "is a device or pipe", "the name of a file");
  refused("/dev/null", "is a device or pipe", "the name of a file");
  refused(folder / std::string(300, 'x'), "file name too long", "shorter name");
  EXPECT_THAT(folder.names(), UnorderedElementsAre("fifo", "file"));
}

TEST(Target, must_be_writable) {
  TemporaryFolder folder;
  fs::create_directory(folder / "closed");
  fs::permissions(folder / "closed", fs::perms::owner_read | fs::perms::owner_exec);

  const Outcome outcome = run(Start{.arguments = with(fixture_clip(), {"-o", folder / "closed/clip.mp4"}),
                                    .may_ignore_permissions = false});

  EXPECT_THAT(outcome,
              Refuses(5, HasSubstr("closed/clip.mp4: cannot create a file in its folder: permission denied"),
                      HasSubstr("permissions")));
}

TEST(Model, must_be_readable) {
  TemporaryFolder folder;
  fs::copy(fixture_file(), folder / "model.safetensors");
  fs::permissions(folder / "model.safetensors", fs::perms::none);

  const Outcome outcome =
      run(Start{.arguments = with(fixture_clip(folder / "model.safetensors"), {"-o", folder / "clip.mp4"}),
                .may_ignore_permissions = false});

  EXPECT_THAT(outcome, Refuses(5, HasSubstr("model.safetensors: cannot open: permission denied"),
                               HasSubstr("permissions")));
}

TEST(Target, must_be_writable_for_the_other_outputs_too) {
  TemporaryFolder folder;
  const Arguments command = with(demo_clip(), {"-o", folder / "clip.mp4"});

  for (const char* flag : {"--wav", "--latents", "--trace", "--report", "--frames-dir"}) {
    EXPECT_THAT(run(with(command, {flag, folder / "missing/out"})),
                Refuses(2, HasSubstr("missing/out: its folder")))
        << flag;
  }
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(Target, must_be_another_for_each_output) {
  TemporaryFolder folder;
  fs::create_directory_symlink(folder.path(), folder / "again");

  EXPECT_THAT(run(with(fixture_clip(), {"-o", folder / "out", "--trace", folder / "again/out"})),
              Refuses(2, HasSubstr("again/out: two outputs have this name"), HasSubstr("its own")));
}

TEST(Target, that_is_a_link_stays_one) {
  TemporaryFolder folder;
  write_file(folder / "real.mp4", "earlier");
  fs::create_symlink("real.mp4", folder / "clip.mp4");

  ASSERT_THAT(run(with(fixture_clip(), {"-o", folder / "clip.mp4", "--overwrite"})), Succeeds());

  EXPECT_TRUE(fs::is_symlink(folder / "clip.mp4"));
  EXPECT_GT(fs::file_size(folder / "real.mp4"), 1000u);
}

// Everything a run reads and writes, under names that shells and URLs would trip over.
class PathNamed : public ::testing::TestWithParam<const char*> {};

TEST_P(PathNamed, works_for_everything_that_is_read_and_written) {
  TemporaryFolder folder;
  const std::string name = GetParam();
  const fs::path world = folder / name;
  fs::create_directory(world);
  fs::create_symlink(demo_model(), world / (name + ".safetensors"));
  fs::create_directory_symlink(demo_text_encoder(), world / "text");
  const Arguments flags = with(demo_flags(), {"--text-encoder", world / "text"});
  const Arguments command = with({"generate", "--model", world / (name + ".safetensors")}, flags);

  const Outcome outcome =
      run(with(command, {"-o", world / (name + ".mp4"), "--wav", world / (name + ".wav"), "--frames-dir",
                         world / (name + " frames"), "--latents", world / (name + " latents"), "--trace",
                         world / (name + " trace"), "--report", world / (name + ".json")}));
  ASSERT_THAT(outcome, Succeeds());
  ASSERT_THAT(run(with(command, {"--from", world / (name + ".mp4"), "-o", world / "again.mp4"})), Succeeds());
  ASSERT_THAT(
      run(with(command, {"--decode-latents", world / (name + " latents"), "--wav", world / "again.wav"})),
      Succeeds());

  EXPECT_THAT(run({"inspect", world / (name + ".mp4")}).out, HasSubstr("a red circle"));
  EXPECT_THAT(
      run({"plan", "--json", "--model", world / (name + ".safetensors"), "--text-encoder", world / "text"}),
      Succeeds());
  EXPECT_TRUE(same_bytes(world / (name + ".mp4"), world / "again.mp4"));
  EXPECT_TRUE(same_bytes(world / (name + ".wav"), world / "again.wav"));
  EXPECT_EQ(std::distance(fs::directory_iterator(world), {}), 10);
}

INSTANTIATE_TEST_SUITE_P(
    Number, PathNamed,
    ::testing::Values("with spaces", "\u0444\u0438\u043b\u044c\u043c \u6f22\u5b57 e\u0301\u00fc \U0001f30a",
                      "'single' \"double\" `back` $HOME", "-o 100%d [*] #1?a=b&c;d\\e:f,g",
                      "latin-1 \xe9t\xe9"),
    [](const auto& info) { return std::to_string(info.index); });

TEST(Path, may_be_relative_to_the_folder_of_the_run) {
  TemporaryFolder folder;
  fs::create_symlink(demo_model(), folder / "model.safetensors");
  fs::create_directory_symlink(demo_text_encoder(), folder / "text");
  fs::create_directory(folder / "deep");
  const Arguments flags = with(demo_flags(), {"--text-encoder", "../text"});

  const Outcome outcome =
      run(Start{.arguments = with(with({"generate", "--model", "../model.safetensors"}, flags),
                                  {"-o", "clip.mp4", "--wav", "./clip.wav", "--frames-dir", "../frames"}),
                .folder = folder / "deep"});

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_TRUE(fs::exists(folder / "deep/clip.mp4"));
  EXPECT_TRUE(fs::exists(folder / "deep/clip.wav"));
  EXPECT_TRUE(fs::exists(folder / "frames/frame_00016.png"));
}

TEST(Target, must_not_be_an_input) {
  TemporaryFolder folder;
  fs::copy(fixture_file(), folder / "model.safetensors");
  const auto bytes = fs::file_size(folder / "model.safetensors");

  const Outcome outcome =
      run(with(fixture_clip(folder / "model.safetensors"),
               {"--overwrite", "-o", folder / "clip.mp4", "--trace", folder / "./model.safetensors"}));

  EXPECT_THAT(outcome,
              Refuses(2, HasSubstr("model.safetensors: is an input of this run"), HasSubstr("another name")));
  EXPECT_EQ(fs::file_size(folder / "model.safetensors"), bytes);
}

TEST(Target, has_one_name_however_it_is_spelt) {
  TemporaryFolder folder;
  fs::create_directory(folder / "d");

  for (const char* other : {"./clip.mp4", "d/../clip.mp4"}) {
    EXPECT_THAT(run(with(fixture_clip(),
                         {"-o", folder / "clip.mp4", "--trace", folder.path().string() + "/" + other})),
                Refuses(2, HasSubstr("two outputs have this name")))
        << other;
  }
}

TEST(Target, is_an_mp4) {
  TemporaryFolder folder;

  EXPECT_THAT(run(with(fixture_clip(), {"-o", folder / "clip.webm"})),
              Refuses(2, HasSubstr("clip.webm: videos are written as mp4 only"), HasSubstr("clip.mp4")));
}

TEST(Target, that_would_stay_empty_is_refused) {
  TemporaryFolder folder;

  EXPECT_THAT(run(with(fixture_clip(), {"-o", folder / "clip.mp4", "--wav", folder / "clip.wav"})),
              Refuses(2, HasSubstr("--no-audio and --wav contradict each other")));
}

TEST(Request, that_needs_more_memory_than_there_is_is_refused_before_work) {
  TemporaryFolder folder;

  EXPECT_THAT(run(with(demo_clip(), {"--width", "8192", "--height", "8192", "--frames", "10001", "-o",
                                     folder / "clip.mp4"})),
              Fails(4, HasSubstr("not enough memory for the phase"), HasSubstr("fits: ")));
}

TEST(Flag, that_is_unknown_is_named_before_what_is_missing) {
  EXPECT_THAT(run({"generate", "--bogus"}), Refuses(2, HasSubstr("'--bogus' is unknown")));
}

}  // namespace
}  // namespace sluice::test
