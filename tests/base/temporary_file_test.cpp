#include "base/temporary_file.h"

#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

namespace sluice {
namespace {

using test::FaultySyscalls;
using test::file_content;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(TemporaryFile, appears_under_its_name_when_committed) {
  TemporaryFolder folder;
  TemporaryFile file(folder / "out.mp4");
  write_file(file.path(), "frames");
  EXPECT_FALSE(std::filesystem::exists(folder / "out.mp4"));

  file.commit();

  EXPECT_THAT(folder.names(), ElementsAre("out.mp4"));
  EXPECT_EQ(file_content(folder / "out.mp4"), "frames");
}

TEST(TemporaryFile, leaves_nothing_behind_without_commit) {
  TemporaryFolder folder;
  {
    TemporaryFile file(folder / "out.mp4");
    write_file(file.path(), "half");
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(TemporaryFile, leaves_nothing_behind_when_flushing_fails) {
  TemporaryFolder folder;
  {
    TemporaryFile file(folder / "out.mp4");
    FaultySyscalls faults;
    faults.fail_fsync(EIO);
    EXPECT_THAT([&] { file.commit(); }, ThrowsError(ErrorKind::io, HasSubstr("out.mp4: cannot flush")));
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(TemporaryFile, keeps_the_old_file_until_the_new_one_is_complete) {
  TemporaryFolder folder;
  write_file(folder / "out.mp4", "old");
  { TemporaryFile abandoned(folder / "out.mp4"); }
  EXPECT_EQ(file_content(folder / "out.mp4"), "old");

  TemporaryFile file(folder / "out.mp4");
  write_file(file.path(), "new");
  file.commit();

  EXPECT_EQ(file_content(folder / "out.mp4"), "new");
}

TEST(TemporaryFile, leaves_a_file_that_somebody_else_made_meanwhile_and_says_where_its_own_is) {
  const TemporaryFolder folder;
  TemporaryFile file(folder / "out.bin");
  write_file(file.path(), "mine");
  write_file(folder / "out.bin", "theirs");
  const std::string kept = file.path().string();

  EXPECT_THAT([&] { file.commit(); },
              ThrowsError(ErrorKind::io, HasSubstr("somebody else"), HasSubstr(kept)));
  EXPECT_EQ(file_content(folder / "out.bin"), "theirs");
  EXPECT_EQ(file_content(kept), "mine");
}

TEST(TemporaryFile, is_removed_once_when_moved) {
  TemporaryFolder folder;
  std::optional<TemporaryFile> first(folder / "out.mp4");
  TemporaryFile second(std::move(*first));
  first.reset();
  EXPECT_TRUE(std::filesystem::exists(second.path()));

  second.commit();

  EXPECT_THAT(folder.names(), ElementsAre("out.mp4"));
}

TEST(TemporaryFile, keeps_a_symbolic_link_and_replaces_what_it_points_to) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder / "elsewhere");
  write_file(folder / "elsewhere/real.mp4", "old");
  std::filesystem::create_symlink("elsewhere/real.mp4", folder / "out.mp4");
  TemporaryFile file(folder / "out.mp4");
  write_file(file.path(), "new");

  file.commit();

  EXPECT_TRUE(std::filesystem::is_symlink(folder / "out.mp4"));
  EXPECT_EQ(file_content(folder / "elsewhere/real.mp4"), "new");
  EXPECT_THAT(folder.names(), UnorderedElementsAre("out.mp4", "elsewhere"));
}

TEST(TemporaryFile, takes_names_of_any_characters_up_to_the_longest) {
  TemporaryFolder folder;
  std::string longest;
  while (longest.size() + 3 <= 255) longest += "長";
  for (const std::string& name : {std::string("видео 'a' \"b\".mp4"), longest}) {
    TemporaryFile file(folder / name);
    write_file(file.path(), "x");
    file.commit();
    EXPECT_EQ(file_content(folder / name), "x") << name;
  }
}

TEST(TemporaryFile, that_cannot_be_created_names_target_and_reason) {
  EXPECT_THAT(
      [] { TemporaryFile file("/no/such/folder/out.mp4"); },
      ThrowsError(ErrorKind::io, AllOf(HasSubstr("/no/such/folder/out.mp4"), HasSubstr("no such file"))));
}

TEST(Abandoned, files_of_the_wanted_targets_are_removed_and_no_others) {
  TemporaryFolder folder;
  for (const char* name :
       {".clip.mp4.0123abcd.partial", ".clip.mp4.89ef0123.partial", ".other.mp4.0123abcd.partial",
        ".clip.mp4.0123abc.partial", ".clip.mp4.0123ABCD.partial", ".clip.mp4.partial",
        "clip.mp4.0123abcd.partial", "clip.mp4"}) {
    write_file(folder / name, "");
  }

  remove_abandoned(folder.path(), [](std::string_view target) { return target == "clip.mp4"; });

  EXPECT_THAT(folder.names(), UnorderedElementsAre(".other.mp4.0123abcd.partial", ".clip.mp4.0123abc.partial",
                                                   ".clip.mp4.0123ABCD.partial", ".clip.mp4.partial",
                                                   "clip.mp4.0123abcd.partial", "clip.mp4"));
}

TEST(Abandoned, temporary_files_are_recognized_as_they_are_made) {
  TemporaryFolder folder;
  TemporaryFile file(folder / "clip.mp4");

  remove_abandoned(folder.path(), [](std::string_view target) { return target == "clip.mp4"; });

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(CheckTarget, accepts_a_new_file_and_one_to_overwrite) {
  TemporaryFolder folder;
  write_file(folder / "old", "");

  EXPECT_NO_THROW(check_target(folder / "new", Existing::refuse));
  EXPECT_NO_THROW(check_target(folder / "old", Existing::overwrite));
  EXPECT_NO_THROW(check_target("name-only", Existing::refuse));
  EXPECT_THAT(folder.names(), ElementsAre("old"));
}

TEST(CheckTarget, refuses_an_existing_file_unless_told) {
  TemporaryFolder folder;
  write_file(folder / "old", "");

  EXPECT_THAT([&] { check_target(folder / "old", Existing::refuse); },
              ThrowsError(ErrorKind::usage, HasSubstr("exists already"), HasSubstr("--overwrite")));
}

TEST(CheckTarget, refuses_folders_devices_and_missing_folders) {
  TemporaryFolder folder;
  auto refuses = [](const std::filesystem::path& target, const char* reason) {
    EXPECT_THAT([&] { check_target(target, Existing::overwrite); },
                ThrowsError(ErrorKind::usage, HasSubstr(reason)));
  };

  refuses(folder.path(), "is a folder");
  refuses(folder / "", "is a folder");
  refuses("/dev/null", "is a device");
  refuses(folder / "missing/out.mp4", "does not exist");
  refuses(folder / std::string(300, 'x'), "name too long");
  refuses("", "is empty");
}

TEST(CheckTarget, refuses_a_folder_that_cannot_be_written) {
  EXPECT_THAT([] { check_target("/proc/out.mp4", Existing::refuse); },
              ThrowsError(ErrorKind::io, HasSubstr("/proc/out.mp4")));
}

}  // namespace
}  // namespace sluice
