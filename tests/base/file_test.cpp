#include "base/file.h"

#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cerrno>
#include <string>

namespace sluice {
namespace {

using test::FaultySyscalls;
using test::file_content;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string read_string(const File& file, std::size_t size, Bytes offset) {
  std::string text(size, '\0');
  read_exact(file, std::as_writable_bytes(std::span(text)), offset, "tensor 'a'");
  return text;
}

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(File, that_is_missing_is_bad_input) {
  EXPECT_THAT([] { File::open("no/such/file"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("no/such/file")));
}

TEST(File, that_is_a_folder_or_a_pipe_is_bad_input) {
  TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);

  EXPECT_THAT([&] { File::open(folder.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("is a folder")));
  EXPECT_THAT([&] { File::open(folder / "pipe"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("no regular file")));
}

TEST(ReadExact, returns_every_byte_through_short_and_interrupted_reads) {
  TemporaryFolder folder;
  write_file(folder / "f", "0123456789");
  FaultySyscalls faults;
  faults.move_at_most(3).interrupt_often();

  EXPECT_EQ(read_string(File::open(folder / "f"), 8, 1), "12345678");
}

TEST(ReadExact, names_file_and_tensor_and_place_where_the_file_ends_early) {
  TemporaryFolder folder;
  write_file(folder / "f", "0123456789");

  EXPECT_THAT(
      [&] { read_string(File::open(folder / "f"), 8, 6); },
      ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr((folder / "f").string()), HasSubstr("at byte 10"),
                                                 HasSubstr("tensor 'a'"), HasSubstr("4 of 8 bytes"))));
}

TEST(ReadExact, reports_a_failing_disk_as_io) {
  TemporaryFolder folder;
  write_file(folder / "f", "0123456789");
  FaultySyscalls faults;
  faults.move_at_most(4).fail_nth_read(2, EIO);

  EXPECT_THAT(
      [&] { read_string(File::open(folder / "f"), 8, 0); },
      ThrowsError(ErrorKind::io, AllOf(HasSubstr("tensor 'a' at byte 4"), HasSubstr("input/output error"))));
}

TEST(WriteAll, writes_every_byte_through_short_and_interrupted_writes) {
  TemporaryFolder folder;
  write_file(folder / "f", "");
  FaultySyscalls faults;
  faults.move_at_most(3).interrupt_often();

  write_all(File::open_for_writing(folder / "f"), as_bytes("0123456789"), "f");

  EXPECT_EQ(file_content(folder / "f"), "0123456789");
}

TEST(WriteAll, tells_a_full_disk_and_its_remedy) {
  File full = File::open_for_writing("/dev/full");

  EXPECT_THAT([&] { write_all(full, as_bytes("x"), "out.safetensors"); },
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("out.safetensors"), HasSubstr("no space left")),
                          HasSubstr("free space")));
}

TEST(ReadText, refuses_more_than_the_limit) {
  TemporaryFolder folder;
  write_file(folder / "config.json", "{} ");

  EXPECT_EQ(read_text(folder / "config.json", 3), "{} ");
  EXPECT_THAT([&] { read_text(folder / "config.json", 2); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("3 B")));
}

TEST(FileIdentity, changes_with_content_and_with_replacement) {
  TemporaryFolder folder;
  write_file(folder / "f", "0123456789");
  File file = File::open(folder / "f");
  FileIdentity then = file.identity();

  write_file(folder / "g", "0123456789");
  EXPECT_FALSE(File::open(folder / "g").identity().same_file(then));

  std::filesystem::resize_file(folder / "f", 3);
  EXPECT_TRUE(file.identity().same_file(then));
  EXPECT_NE(file.identity(), then);
  EXPECT_EQ(file.identity().size, 3u);
}

}  // namespace
}  // namespace sluice
