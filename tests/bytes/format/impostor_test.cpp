#include "bytes/format/impostor.h"

#include "support/synthetic_file.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <sluice/checkpoint.h>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice::bytes {
namespace {

using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string what_is(std::string_view first) {
  auto impostor = recognize_impostor(std::as_bytes(std::span(first)));
  return impostor ? std::string(impostor->what) : "nothing known";
}

TEST(Impostor, is_told_by_its_first_bytes) {
  EXPECT_THAT(what_is(""), HasSubstr("empty"));
  EXPECT_THAT(what_is("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"),
              HasSubstr("Git LFS pointer"));
  EXPECT_THAT(what_is("<!DOCTYPE html><html>"), HasSubstr("web page"));
  EXPECT_THAT(what_is("\xef\xbb\xbf\n  <HTML lang=en>"), HasSubstr("web page"));
  EXPECT_THAT(what_is("<?xml version='1.0'?><Error>"), HasSubstr("web page"));
  EXPECT_THAT(what_is(std::string_view("GGUF\3\0\0\0", 8)), HasSubstr("GGUF"));
  EXPECT_THAT(what_is(std::string_view("PK\3\4\0\0\10\10\0\0", 10)), HasSubstr("zip"));
  EXPECT_THAT(what_is("\x80\x02}q\x01."), HasSubstr("pickle"));
  EXPECT_THAT(what_is(std::string_view("\x80\x04\x95\x20\0\0\0\0\0\0\0}", 12)), HasSubstr("pickle"));
  EXPECT_THAT(what_is("\x1f\x8b\x08"), HasSubstr("gzip"));
  EXPECT_THAT(what_is(std::string_view("\0\0\0\x20"
                                       "ftypisom",
                                       12)),
              HasSubstr("video"));
}

TEST(Impostor, is_not_seen_in_texts_and_headers) {
  EXPECT_EQ(what_is("{\"a\": 1}"), "nothing known");
  EXPECT_EQ(what_is("<s> is the first token"), "nothing known");
  // A header of 640, 0x04034b50 or 0x8b1f bytes begins like a pickle, a zip or a gzip file.
  EXPECT_EQ(what_is(std::string_view("\x80\x02\0\0\0\0\0\0{", 9)), "nothing known");
  EXPECT_EQ(what_is(std::string_view("PK\3\4\0\0\0\0{", 9)), "nothing known");
  EXPECT_EQ(what_is(std::string_view("\x1f\x8b\0\0\0\0\0\0{", 9)), "nothing known");
}

TEST(Video, is_told_by_its_first_box) {
  TemporaryFolder folder;
  write_file(folder / "clip", std::string("\0\0\0\x20", 4) + "ftypisom");
  write_file(folder / "short", "ftyp");
  SyntheticFile().write_to(folder / "model");

  EXPECT_TRUE(is_video(folder / "clip"));
  for (const char* name : {"short", "model", ".", "missing"}) EXPECT_FALSE(is_video(folder / name)) << name;
}

TEST(Impostor, refusal_names_file_kind_expectation_and_remedy) {
  TemporaryFolder folder;
  write_file(folder / "config.json", "version https://git-lfs.github.com/spec/v1\n");

  EXPECT_THAT(
      [&] { refuse_impostor(folder / "config.json", "a JSON config"); },
      ThrowsError(ErrorKind::bad_input,
                  AllOf(HasSubstr("config.json"), HasSubstr("is a Git LFS pointer, not a JSON config")),
                  HasSubstr("git lfs pull")));
}

TEST(Impostor, lets_the_expected_pass) {
  TemporaryFolder folder;
  write_file(folder / "config.json", "{}");

  EXPECT_NO_THROW(refuse_impostor(folder / "config.json", "a JSON config"));
}

TEST(Checkpoint, tells_an_impostor_from_a_damaged_file) {
  TemporaryFolder folder;
  for (std::string_view content : {"", "<html></html>", "GGUF1234", "\x80\x02}q\x01.", "\x1f\x8b\x08\x08"}) {
    write_file(folder / "model.safetensors", content);

    EXPECT_THAT([&] { Checkpoint::open(folder / "model.safetensors"); },
                ThrowsError(ErrorKind::bad_input, HasSubstr(", not a safetensors file"), Not(IsEmpty())));
  }
}

TEST(Checkpoint, tells_a_json_text_given_as_weights) {
  TemporaryFolder folder;
  write_file(folder / "config.json", "{\"a\": 1}");

  EXPECT_THAT([&] { Checkpoint::open(folder / "config.json"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("is a JSON text")));
  write_file(folder / "config.json", "{}");
  EXPECT_THAT([&] { Checkpoint::open(folder / "config.json"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("is a JSON text")));
}

TEST(Checkpoint, opens_files_whose_header_length_looks_like_something_else) {
  // The first bytes of a pickle, of a JSON text, of a web page, of a gzip file.
  for (std::size_t length : std::initializer_list<std::size_t>{0x280, '{', '<', 0x8b1f}) {
    SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {1});
    file.pad_header(length - file.header_text().size());

    EXPECT_EQ(Checkpoint::open(file.write().path()).tensors().size(), 1u) << length;
  }
}

}  // namespace
}  // namespace sluice::bytes
