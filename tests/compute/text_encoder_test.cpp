// The text encoder's folder: what is wrong with it is found before any work.  And what becomes of prompts.
#include "compute/world.h"
#include "support/wide_text_encoder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <functional>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kLfsPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 33384568\n";
constexpr const char* kWebPage = "\n<!doctype html><html><head>";

using Change = std::function<void(const fs::path& encoder)>;

struct Row {
  const char* name;
  Change change;  // of a copy of the demo's
  std::string message;
  std::string hint;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

Change replaced(const char* file, std::string content) {
  return [=](const fs::path& encoder) { write_file(encoder / file, content); };
}

Change removed(const char* file) {
  return [=](const fs::path& encoder) { fs::remove(encoder / file); };
}

Change with_config(const char* key, const json& value) {
  return [=](const fs::path& encoder) {
    json config = json::parse(file_content(encoder / "config.json"));
    config.at("text_config")[key] = value;
    write_file(encoder / "config.json", config.dump());
  };
}

// Another Gemma: that of the fixtures, whole and sound in itself.
void replace_by_another(const fs::path& encoder) {
  const fs::path fixture = SLUICE_SOURCE_DIR "/tests/fixtures/gemma3/hidden_states";
  const json manifest = json::parse(file_content(fixture / "manifest.json"));
  write_file(encoder / "config.json",
             json({{"model_type", "gemma3_text"}, {"text_config", manifest.at("config")}}).dump());
  write_file(encoder / "model.safetensors", file_content(fixture / "weights.safetensors"));
}

const Row kRows[] = {
    {"folder_that_is_missing", [](const fs::path& encoder) { fs::remove_all(encoder); },
     "there is no such folder", "config.json, weights and tokenizer.json"},
    {"config_missing", removed("config.json"), "config.json: no such file", "path"},
    {"config_git_lfs_pointer", replaced("config.json", kLfsPointer),
     "config.json: is a Git LFS pointer, not a JSON config", "git lfs pull"},
    {"config_web_page", replaced("config.json", kWebPage), "config.json: is a web page, not a JSON config",
     "login"},
    {"config_cut_short", replaced("config.json", "{\"text_config\": {"), "config.json: is no JSON object",
     "cut short"},
    {"tokenizer_missing", removed("tokenizer.json"), "there is no tokenizer.json", "copy the tokenizer.json"},
    {"tokenizer_git_lfs_pointer", replaced("tokenizer.json", kLfsPointer),
     "tokenizer.json: is a Git LFS pointer, not a tokenizer.json", "git lfs pull"},
    {"tokenizer_web_page", replaced("tokenizer.json", kWebPage),
     "tokenizer.json: is a web page, not a tokenizer.json", "login"},
    {"tokenizer_of_something_else", replaced("tokenizer.json", "{}"), "tokenizer.json: there is no 'model'",
     ""},
    {"weights_missing", removed("model.safetensors"), "folder holds no safetensors file", "safetensors"},
    {"weights_git_lfs_pointer", replaced("model.safetensors", kLfsPointer),
     "model.safetensors: is a Git LFS pointer, not a safetensors file", "git lfs pull"},
    {"weights_web_page", replaced("model.safetensors", kWebPage), "model.safetensors: is a web page",
     "login"},
    {"weights_cut_short",
     [](const fs::path& encoder) { fs::resize_file(encoder / "model.safetensors", 600'000); },
     "file has 600000 bytes, its header needs 694664", "cut short"},
    {"another_gemma", replace_by_another,
     "the text encoder has hidden size 24 and 7 layers, the checkpoint needs hidden size 64 and 6 layers",
     "hidden size 64"},
    {"another_vocabulary", with_config("vocab_size", 451),
     "embed_tokens.weight is [450, 64], the config needs [451, 64]", "same release"},
    {"unknown_rope", with_config("rope_scaling", {{"rope_type", "spiral"}, {"factor", 8.0}}), "spiral", ""},
};

class TextEncoderRefusal : public ::testing::TestWithParam<Row> {};

TEST_P(TextEncoderRefusal, comes_before_any_work_and_names_the_file) {
  TemporaryFolder folder;
  const fs::path encoder = folder / "encoder";
  fs::copy(demo_text_encoder(), encoder, fs::copy_options::recursive);
  GetParam().change(encoder);

  const Outcome outcome = run(with(demo_clip(), {"--text-encoder", encoder, "-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome, Refuses(3, AllOf(HasSubstr(encoder), HasSubstr(GetParam().message)),
                               HasSubstr(GetParam().hint)));
  EXPECT_FALSE(fs::exists(folder / "clip.mp4"));
}

INSTANTIATE_TEST_SUITE_P(Of, TextEncoderRefusal, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Prompt, beyond_the_limit_is_cut_and_both_counts_are_told) {
  TemporaryFolder folder;
  std::string prompt;
  for (int i = 0; i < 700; ++i) prompt += "red circle ";

  const Outcome outcome =
      run(with(demo_clip(), {"--prompt", prompt, "-o", folder / "clip.mp4", "--report", folder / "report"}));

  ASSERT_THAT(outcome, Succeeds());
  const json report = json::parse(file_content(folder / "report"));
  const int tokens = report.at("prompt").at("tokens");
  EXPECT_GT(tokens, 1024);
  EXPECT_EQ(report.at("prompt").at("tokens_kept"), 1024);
  const std::string told = "the prompt has " + std::to_string(tokens) + " tokens: the first 1024 are kept, " +
                           std::to_string(tokens - 1024) + " are dropped";
  EXPECT_THAT(outcome.err, HasSubstr("sluice: warning: " + told + "\n"));
  EXPECT_THAT(report.at("warnings").dump(), HasSubstr(told));
}

TEST(Prompt, is_kept_as_the_reference_keeps_it) {
  TemporaryFolder folder;
  std::string kept;
  for (int i = 0; i < 2000; ++i) kept += "a";  // no two prompts of these differ in their first 1024 tokens
  const Arguments encode = {"encode",          "--text-encoder", demo_text_encoder(),
                            "--hidden-states", "--threads",      "1"};

  ASSERT_THAT(run(with(encode, {"--prompt", kept + " b", "-o", folder / "one"})), Succeeds());
  ASSERT_THAT(run(with(encode, {"--prompt", kept + " c", "-o", folder / "two"})), Succeeds());

  EXPECT_TRUE(same_bytes(folder / "one", folder / "two"));
}

TEST(Prompt, may_be_empty) {
  TemporaryFolder folder;

  EXPECT_THAT(run(with(demo_clip(), {"--prompt", "", "-o", folder / "clip.mp4"})), Succeeds());
}

// The text encoder's work takes 200 MB; what comes behind it must not carry them along.
TEST(TextPhase, gives_its_memory_back) {
  if (kSanitized) GTEST_SKIP() << "freed memory stays with the sanitizer";
  TemporaryFolder folder;
  write_wide_text_encoder(demo_text_encoder(), folder / "wide");
  std::string prompt;
  for (int i = 0; i < 600; ++i) prompt += "red circle ";
  auto peaks = [&](const fs::path& encoder) {
    const Outcome outcome = run(with(demo_clip(), {"--text-encoder", encoder, "--prompt", prompt, "--json",
                                                   "--latents", folder / "latents", "--overwrite"}));
    EXPECT_THAT(outcome, Succeeds());
    std::map<std::string, Bytes> peaks;
    const json report = json::parse(outcome.out);
    for (const json& phase : report.at("phases")) peaks[phase.at("name")] = phase.at("peak_anonymous");
    return peaks;
  };

  auto plain = peaks(demo_text_encoder());
  auto wide = peaks(folder / "wide");

  EXPECT_GT(wide.at("text"), plain.at("text") + MiB(100));
  EXPECT_LT(wide.at("denoise"), plain.at("denoise") + MiB(16));
}

}  // namespace
}  // namespace sluice::test
