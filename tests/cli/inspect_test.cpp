// `sluice inspect` on checkpoints of any kind: what it shows, and what of them it lets through to a terminal.
#include "support/program.h"
#include "support/synthetic_file.h"
#include "support/wide_text_encoder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// As under `ulimit -v 400000`; no sanitizer lives in so little.
Start in_little_memory(const Arguments& arguments) {
  Start start{.arguments = arguments};
  if (!kSanitized) start.address_space = KiB(400'000);
  return start;
}

json inspect_json(const std::filesystem::path& path) {
  const Outcome outcome = run(in_little_memory({"inspect", "--json", path}));
  EXPECT_THAT(outcome, Succeeds());
  return json::parse(outcome.out);
}

TEST(Inspect, shows_tensors_files_and_metadata_of_a_file) {
  const WrittenFile file = SyntheticFile()
                               .metadata("format", "pt")
                               .tensor("b", Dtype::BF16, {2, 3})
                               .tensor("a", Dtype::U8, {})
                               .write();

  const Outcome text = run({"inspect", file.path()});
  const json object = inspect_json(file.path());

  ASSERT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, AllOf(HasSubstr("U8      []"), HasSubstr("BF16    [2, 3]"),
                              HasSubstr("2 tensors, 13 B"), HasSubstr("  format: pt\n")));
  EXPECT_EQ(object.at("kind"), "checkpoint");
  EXPECT_EQ(object.at("tensors").at(1), json({{"name", "b"},
                                              {"dtype", "BF16"},
                                              {"shape", {2, 3}},
                                              {"bytes", 12},
                                              {"file", "model.safetensors"}}));
  EXPECT_EQ(object.at("files").at(0).at("bytes"), std::filesystem::file_size(file.path()));
  EXPECT_EQ(object.at("metadata"), json({{"format", "pt"}}));
  EXPECT_EQ(object.at("model_version"), nullptr);
}

TEST(Inspect, takes_a_folder_of_shards_and_its_index) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {1}).write_to(folder / "1.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {2}).write_to(folder / "2.safetensors");
  write_file(folder / "m.safetensors.index.json",
             index_text({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));

  const json by_folder = inspect_json(folder.path());

  EXPECT_EQ(by_folder.at("files").size(), 2u);
  EXPECT_EQ(by_folder.at("tensors").at(1).at("file"), "2.safetensors");
  EXPECT_EQ(by_folder, inspect_json(folder / "m.safetensors.index.json"));
}

TEST(Inspect, takes_a_diffusers_folder_component_by_component) {
  TemporaryFolder folder;
  write_file(folder / "model_index.json", "{}");
  for (const char* name : {"vae", "transformer", "scheduler"})
    std::filesystem::create_directory(folder / name);
  SyntheticFile().tensor("x", Dtype::U8, {1}).write_to(folder / "vae/m.safetensors");
  SyntheticFile().tensor("y", Dtype::U8, {1}).write_to(folder / "transformer/m.safetensors");

  const json object = inspect_json(folder.path());
  const Outcome text = run({"inspect", folder.path()});

  EXPECT_EQ(object.at("kind"), "diffusers folder");
  EXPECT_EQ(object.at("components").size(), 2u);
  EXPECT_EQ(object.at("components").at("vae").at("tensors").at(0).at("name"), "x");
  EXPECT_LT(text.out.find("transformer\n"), text.out.find("vae\n"));
}

TEST(Inspect, shows_metadata_that_is_json_as_such_unless_it_is_too_deep_to_read) {
  const std::string deep(1'000'000, '[');
  const WrittenFile file = SyntheticFile()
                               .metadata("config", R"({\"a\": [1, 2]})")
                               .metadata("deep", deep + std::string(deep.size(), ']'))
                               .metadata("broken", "{]")
                               .write();

  const json metadata = inspect_json(file.path()).at("metadata");

  EXPECT_EQ(metadata.at("config").at("a"), json({1, 2}));
  EXPECT_TRUE(metadata.at("deep").is_string());
  EXPECT_EQ(metadata.at("broken"), "{]");
}

TEST(Inspect, lets_no_control_character_of_a_file_reach_a_terminal) {
  const WrittenFile file = SyntheticFile()
                               .metadata(R"(k\u001b[2J)", R"(v\u001b]0;title\u0007\u009b1m\r\n)")
                               .metadata("model_version", R"(2\u001bc)")
                               .metadata("json", R"({\"a\": \"\u007f\u009b\"})")
                               .tensor(R"(a\u001b[31m\u007f)", Dtype::U8, {1})
                               .write("m\x1b[1m.safetensors");

  for (const Arguments& arguments :
       {Arguments{"inspect", file.path()}, Arguments{"inspect", "--json", file.path()}}) {
    const Outcome outcome = run(arguments);

    ASSERT_THAT(outcome, Succeeds());
    EXPECT_TRUE(std::ranges::none_of(outcome.out, [](unsigned char c) {
      return (c < 0x20 && c != '\n') || c == 0x7f;
    })) << outcome.out;
    EXPECT_THAT(outcome.out, Not(HasSubstr("\xc2\x9b")));
  }
  EXPECT_EQ(inspect_json(file.path()).at("metadata").at("json").at("a"), "\x7f\xc2\x9b");
}

TEST(Inspect, cuts_long_metadata_between_characters_and_says_so) {
  std::string value = "x";
  for (int i = 0; i < 100; ++i) value += "é";
  const WrittenFile file = SyntheticFile().metadata("k", value).write();

  const std::string out = run({"inspect", file.path()}).out;

  EXPECT_THAT(out, HasSubstr(value.substr(0, 159) + "… (201 bytes, all of it with --json)"));
}

TEST(Inspect, of_43_GB_works_in_400_MB_of_address_space) {
  TemporaryFolder folder;
  std::vector<TensorInfo> tensors;
  for (int block = 0; block < 48; ++block) {
    for (const char* part : {"attn1.to_q", "attn1.to_k", "ff.net.0.proj", "ff.net.2"}) {
      tensors.push_back({.name = fmt::format("transformer_blocks.{}.{}.weight", block, part),
                         .dtype = Dtype::BF16,
                         .shape = {16384, 7340}});
    }
  }
  write_sparse(folder / "large.safetensors", tensors);
  ASSERT_GT(std::filesystem::file_size(folder / "large.safetensors"), GiB(43));

  const Outcome text = run(in_little_memory({"inspect", folder / "large.safetensors"}));

  ASSERT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, HasSubstr("192 tensors, 43.0 GiB"));
  EXPECT_EQ(inspect_json(folder / "large.safetensors").at("tensors").size(), 192u);
}

TEST(Inspect, of_100000_tensors_works_in_400_MB_of_address_space) {
  TemporaryFolder folder;
  std::vector<TensorInfo> tensors;
  for (int i = 0; i < 100'000; ++i) {
    tensors.push_back({.name = fmt::format("layers.{}.experts.{}.weight", i / 100, i % 100),
                       .dtype = Dtype::F8_E4M3,
                       .shape = {2, 4}});
  }
  write_sparse(folder / "many.safetensors", tensors);

  const Outcome text = run(in_little_memory({"inspect", folder / "many.safetensors"}));

  ASSERT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, HasSubstr("100000 tensors, 781.2 KiB"));
  EXPECT_EQ(inspect_json(folder / "many.safetensors").at("tensors").size(), 100'000u);
}

}  // namespace
}  // namespace sluice::test
