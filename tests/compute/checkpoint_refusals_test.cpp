// Checkpoints that cannot be used are refused before any work: one error with its remedy, no output.
#include "compute/world.h"
#include "support/synthetic_file.h"

#include <gmock/gmock.h>

#include <functional>

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 46149344974\n";

struct Row {
  const char* name;
  std::function<void(const fs::path& model)> write;
  std::string message;
  std::string hint;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

SyntheticFile two_tensors() {
  return std::move(SyntheticFile().tensor("a", Dtype::BF16, {4}).tensor("b", Dtype::F32, {2, 2}));
}

Row broken(const char* name, const SyntheticFile& file, std::string message, std::string hint = "fetch") {
  return {name, [content = file.content()](const fs::path& model) { write_file(model, content); },
          std::move(message), std::move(hint)};
}

Row impostor(const char* name, std::string content, std::string message, std::string hint) {
  return {name, [content](const fs::path& model) { write_file(model, content); }, std::move(message),
          std::move(hint)};
}

const Row kRows[] = {
    broken("header_longer_than_the_file", two_tensors().header_length(5000), "its header alone needs 5008"),
    broken("header_above_the_limit", two_tensors().header_length(100'000'001),
           "header length 100000001 exceeds the format's limit of 100000000 bytes"),
    broken("header_that_is_no_json", two_tensors().header(R"({"a":{"dtype":F32})"), "header"),
    broken("header_that_is_no_utf8",
           two_tensors().header("{\"\xff\xfe\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
           "header", ""),
    broken("duplicate_names", two_tensors().tensor("a", Dtype::F32, {1}),
           "tensor 'a' appears twice in the header"),
    broken("overlapping_tensors", two_tensors().at_offset("b", 2), "tensors 'a' and 'b' overlap"),
    broken("a_hole", two_tensors().append_data("12345678").at_offset("b", 16), "bytes 8 to 16 of the data"),
    broken("tensors_past_the_end",
           two_tensors().with_field("b", "shape", "[400]").with_field("b", "data_offsets", "[8,1608]"),
           "its header needs"),
    broken("shape_and_size_that_disagree", two_tensors().with_field("b", "shape", "[3, 2]"),
           "tensor 'b' of F32 [3, 2] needs 24 bytes, but its data_offsets [8, 24] hold 16"),
    broken("sizes_that_overflow", two_tensors().with_field("b", "shape", "[4294967296, 4294967296]"),
           "tensor 'b' of F32 [4294967296, 4294967296] has no size that 64 bits can count"),
    broken("unknown_dtype", two_tensors().with_field("b", "dtype", "\"F3\""),
           "tensor 'b' has the unknown dtype 'F3'", "newer than safetensors 0.8"),
    {"truncated_file",
     [](const fs::path& model) { write_file(model, file_content(fixture_file()).substr(0, 1'000'000)); },
     "file has 1000000 bytes, its header needs 1084122: 84122 bytes (82.2 KiB) are missing", "cut short"},
    impostor("git_lfs_pointer", kLfsPointer, "is a Git LFS pointer, not a safetensors file", "git lfs pull"),
    impostor("web_page", "<!DOCTYPE html><html>", "is a web page, not a safetensors file", "needs a login"),
    impostor("gguf_file", "GGUF\3\0\0\0 and more", "is a GGUF file", "safetensors version"),
    impostor("pickle", std::string("\x80\x02\x8a\x0al\xfc", 6), "is a Python pickle", "safetensors version"),
    impostor("empty_file", "", "is an empty file", "again"),
    {"missing_file", [](const fs::path&) {}, "there is no such file or folder",
     "give --model a .safetensors file"},
    {"folder_without_weights", [](const fs::path& model) { fs::create_directory(model); },
     "folder holds no safetensors file", "give a .safetensors file"},
    broken("missing_config", two_tensors(), "the metadata has no 'config'", "as published"),
    broken("another_version", two_tensors().metadata("model_version", "2.5.0").metadata("config", "{}"),
           "the checkpoint is of model version 2.5.0, this program reads 2.3", "use an LTX-2.3 checkpoint"),
    {"index_that_names_a_missing_file",
     [](const fs::path& model) {
       fs::create_directory(model);
       write_file(model / "model.safetensors.index.json", index_text({{"a", "one.safetensors"}}));
     },
     "one.safetensors: the shard is missing", "fetch every file that the index names"},
    {"index_that_leads_out_of_its_folder",
     [](const fs::path& model) {
       fs::create_directory(model);
       two_tensors().write_to(model / "../one.safetensors");
       write_file(model / "model.safetensors.index.json", index_text({{"a", "../one.safetensors"}}));
     },
     "index names the file '../one.safetensors' for tensor 'a'", "do not trust this file"},
    {"shards_of_two_versions",
     [](const fs::path& model) {
       fs::create_directory(model);
       SyntheticFile()
           .tensor("a", Dtype::BF16, {4})
           .metadata("model_version", "2.3.0")
           .write_to(model / "one.safetensors");
       SyntheticFile()
           .tensor("b", Dtype::F32, {2, 3})
           .metadata("model_version", "2.0.0")
           .write_to(model / "two.safetensors");
       write_file(model / "model.safetensors.index.json",
                  index_text({{"a", "one.safetensors"}, {"b", "two.safetensors"}}));
     },
     "two.safetensors of version 2.0.0 (with 'b' [2, 3])", "take all shards from one release"},
    {"component_without_a_config",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       fs::remove(model / "vae/config.json");
     },
     "vae/config.json: no such file", ""},
    {"component_whose_config_is_a_git_lfs_pointer",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       write_file(model / "transformer/config.json", kLfsPointer);
     },
     "transformer/config.json: is a Git LFS pointer", "git lfs pull"},
    {"component_that_is_missing",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       fs::remove_all(model / "connectors");
     },
     "the checkpoint lacks the connectors", "complete LTX-2.3 checkpoint"},
    {"component_of_another_class",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       write_file(model / "vae/config.json", R"({"_class_name": "AutoencoderKLHunyuanVideo"})");
     },
     "the vae is a AutoencoderKLHunyuanVideo, this program reads AutoencoderKLLTX2Video", "LTX-2.3"},
    {"component_of_another_width",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       std::string config = file_content(model / "vae/config.json");
       const std::string four = "\"latent_channels\": 4";
       write_file(model / "vae/config.json",
                  config.replace(config.find(four), four.size(), "\"latent_channels\": 8"));
     },
     "vae", "same release"},
    {"tensor_of_another_shape",
     [](const fs::path& model) {
       copy_fixture_folder(model);
       std::string config = file_content(model / "transformer/config.json");
       const std::string two = "\"num_layers\": 2";
       write_file(model / "transformer/config.json",
                  config.replace(config.find(two), two.size(), "\"num_layers\": 3"));
     },
     "the transformer's tensors do not match its config", "same release"},
};

class CheckpointRefusal : public ::testing::TestWithParam<Row> {};

TEST_P(CheckpointRefusal, comes_before_any_work_and_names_the_file) {
  TemporaryFolder folder;
  fs::create_directory(folder / "out");
  const fs::path model = folder / "model.safetensors";
  GetParam().write(model);

  const Outcome outcome = run(with(fixture_clip(model), {"-o", folder / "out/clip.mp4"}));

  EXPECT_THAT(outcome,
              Refuses(3, AllOf(HasSubstr(model), HasSubstr(GetParam().message)), HasSubstr(GetParam().hint)));
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_TRUE(fs::is_empty(folder / "out"));
}

INSTANTIATE_TEST_SUITE_P(Of, CheckpointRefusal, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(CheckpointRefusals, name_every_shard_that_is_cut_short_with_both_sizes) {
  TemporaryFolder folder;
  copy_fixture_folder(folder / "model");
  const fs::path shards = folder / "model/transformer";
  for (const char* number : {"1", "3"})
    fs::resize_file(shards / (std::string("diffusion_pytorch_model-0000") + number + "-of-00003.safetensors"),
                    40'000);

  const Outcome outcome = run(with(fixture_clip(folder / "model"), {"-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome,
              Refuses(3, AllOf(HasSubstr("2 of 3 shards cannot be used"), HasSubstr("00001-of-00003"),
                               HasSubstr("00003-of-00003"), HasSubstr("file has 40000 bytes"))));
}

TEST(CheckpointRefusals, name_both_widths_of_a_vocoder_that_does_not_fit) {
  TemporaryFolder folder;
  Arguments sound = fixture_clip();
  std::erase(sound, "--no-audio");

  const Outcome outcome = run(with(sound, {"-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome, Refuses(3,
                               AllOf(HasSubstr(fixture_file()), HasSubstr("the audio VAE gives is 32"),
                                     HasSubstr("the vocoder takes is 16")),
                               HasSubstr("take all of them from one release")));
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace sluice::test
