#include "weights/quantize/partial_folder.h"

#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace sluice::weights {
namespace {

using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using testing::HasSubstr;
using testing::IsEmpty;

QuantizationManifest usual() {
  return {.format = "nf4",
          .components = {"transformer"},
          .shard_size = 1000,
          .quantized_tensors = 3,
          .sources = {{"a.safetensors", 10, 20, "abc"}}};
}

TEST(PartialFolder, takes_up_files_that_are_complete_and_there) {
  const TemporaryFolder folder;
  {
    PartialFolder begun(folder / "out", usual());
    write_file(begun.path() / "one", "12345");
    write_file(begun.path() / "two", "12345");
    begun.add({"one", 5, "x"});
    begun.add({"two", 6, "y"});  // is one byte short
    begun.add({"three", 7, "z"});
  }

  const PartialFolder again(folder / "out", usual());

  EXPECT_NE(again.finished("one"), nullptr);
  EXPECT_EQ(again.finished("two"), nullptr);
  EXPECT_EQ(again.finished("three"), nullptr);
}

TEST(PartialFolder, refuses_to_go_on_with_another_request_naming_what_differs) {
  struct Other {
    std::function<void(QuantizationManifest&)> change;
    const char* says;
  };
  const Other others[] = {
      {[](auto& m) { m.format = "fp8"; }, "was begun with --format nf4, not fp8"},
      {[](auto& m) { m.components = {"connectors"}; },
       "was begun with --components transformer, not connectors"},
      {[](auto& m) { m.shard_size = 7; }, "was begun with --shard-size 1000, not 7"},
      {[](auto& m) { m.sources[0].name = "b"; }, "was begun from 'a.safetensors', not 'b'"},
      {[](auto& m) { m.sources[0].size = 11; }, "when 'a.safetensors' had 10 bytes, not 11"},
      {[](auto& m) { m.sources[0].header_checksum = "d"; }, "when 'a.safetensors' had another header"},
      {[](auto& m) { m.sources[0].modified_ns = 21; }, "before 'a.safetensors' was written to"},
      {[](auto& m) {
         m.sources.push_back({"b", 1, 1, ""});
       },
       "was begun from 1 files, not 2"},
  };
  const TemporaryFolder folder;
  {
    PartialFolder begun(folder / "out", usual());
    begun.add({"one", 5, "x"});
  }
  for (const Other& other : others) {
    QuantizationManifest wanted = usual();
    other.change(wanted);
    EXPECT_THAT([&] { PartialFolder(folder / "out", wanted); },
                ThrowsError(ErrorKind::usage, HasSubstr(other.says), HasSubstr("remove the folder")));
  }
}

TEST(PartialFolder, in_which_nothing_was_finished_is_forgotten) {
  const TemporaryFolder folder;
  { PartialFolder begun(folder / "out", usual()); }
  EXPECT_THAT(folder.names(), IsEmpty());
  std::filesystem::create_directory(folder / "out.partial");  // as a kill leaves it
  write_file(folder / "out.partial/quantization.json", to_json(usual(), Times::kept));
  QuantizationManifest other = usual();
  other.format = "fp8";

  const PartialFolder again(folder / "out", other);

  EXPECT_EQ(again.manifest().format, "fp8");
}

TEST(PartialFolder, belongs_to_one_run_at_a_time) {
  const TemporaryFolder folder;
  const PartialFolder first(folder / "out", usual());

  EXPECT_THAT([&] { PartialFolder(folder / "out", usual()); },
              ThrowsError(ErrorKind::usage, HasSubstr("another run")));
}

TEST(PartialFolder, replaces_a_folder_of_a_model_only_at_the_end) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "out");
  write_file(folder / "out/model.safetensors", "old");
  PartialFolder partial(folder / "out/", usual());
  write_file(partial.path() / "new", "new");
  EXPECT_EQ(test::file_content(folder / "out/model.safetensors"), "old");

  partial.commit(Existing::overwrite);

  EXPECT_FALSE(std::filesystem::exists(folder / "out/model.safetensors"));
  EXPECT_EQ(test::file_content(folder / "out/new"), "new");
  EXPECT_THAT(folder.names(), testing::ElementsAre("out"));
}

TEST(PartialFolder, never_replaces_what_is_no_folder_of_a_model) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "photos");
  write_file(folder / "photos/cat.jpg", "cat");
  write_file(folder / "file", "text");

  EXPECT_THAT([&] { check_target_folder(folder / "photos", Existing::refuse); },
              ThrowsError(ErrorKind::usage, HasSubstr("exists already"), HasSubstr("--overwrite")));
  for (const char* name : {"photos", "file"}) {
    EXPECT_THAT([&] { check_target_folder(folder / name, Existing::overwrite); },
                ThrowsError(ErrorKind::usage, HasSubstr("no folder of a model")));
  }
  EXPECT_THAT([&] { check_target_folder(folder / "none/out", Existing::refuse); },
              ThrowsError(ErrorKind::usage, HasSubstr("does not exist")));
}

TEST(PartialFolder, manifest_of_a_complete_folder_tells_no_times) {
  const TemporaryFolder folder;
  PartialFolder partial(folder / "out", usual());
  EXPECT_THAT(test::file_content(partial.path() / "quantization.json"), HasSubstr("modified_ns"));

  partial.commit(Existing::refuse);

  const std::string text = test::file_content(folder / "out/quantization.json");
  EXPECT_THAT(text, testing::Not(HasSubstr("modified_ns")));
  EXPECT_EQ(to_json(parse_manifest(text, "m"), Times::left_out), text);
}

TEST(PartialFolder, killed_before_the_last_rename_is_complete) {
  const TemporaryFolder folder;
  {
    PartialFolder partial(folder / "out", usual());
    write_file(partial.path() / "one", "12345");
    partial.add({"one", 5, "x"});
    write_file(partial.path() / "quantization.json", to_json(partial.manifest(), Times::left_out));
  }

  const PartialFolder again(folder / "out", usual());

  EXPECT_NE(again.finished("one"), nullptr);
}

}  // namespace
}  // namespace sluice::weights
