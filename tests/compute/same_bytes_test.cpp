// How weights are stored and read, and when a run happens, must not show in what it makes.
#include "compute/world.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

// Everything a run can leave behind.
Arguments all_outputs(const fs::path& folder) {
  fs::create_directory(folder);
  return {"-o",        folder / "clip.mp4", "--wav",   folder / "clip.wav", "--frames-dir", folder / "frames",
          "--latents", folder / "latents",  "--trace", folder / "trace"};
}

testing::AssertionResult same_outputs(const fs::path& one, const fs::path& other) {
  for (const char* name : {"clip.mp4", "clip.wav", "latents", "trace"}) {
    if (auto same = same_bytes(one / name, other / name); !same) return same;
  }
  return same_files(one / "frames", other / "frames");
}

TEST(SameBytes, come_from_a_single_file_and_from_a_diffusers_folder) {
  TemporaryFolder folder;

  for (const auto& [name, model] : {std::pair("file", fixture_file()), {"folder", fixture_folder()}}) {
    fs::create_directory(folder / name);
    ASSERT_THAT(
        run(with(fixture_clip(model), {"--trace", folder / name / "trace", "--latents",
                                       folder / name / "latents", "--frames-dir", folder / name / "frames"})),
        Succeeds());
  }

  EXPECT_TRUE(same_bytes(folder / "file/trace", folder / "folder/trace"));
  EXPECT_TRUE(same_bytes(folder / "file/latents", folder / "folder/latents"));
  EXPECT_TRUE(same_files(folder / "file/frames", folder / "folder/frames"));
}

TEST(SameBytes, come_from_every_read_backend) {
  TemporaryFolder folder;

  for (const char* backend : {"mmap", "pread", "uring", "auto"})
    ASSERT_THAT(run(with(with(demo_clip(), all_outputs(folder / backend)), {"--read-backend", backend})),
                Succeeds());

  for (const char* backend : {"pread", "uring", "auto"})
    EXPECT_TRUE(same_outputs(folder / "mmap", folder / backend)) << backend;
}

TEST(SameBytes, come_from_reads_past_the_page_cache_or_a_refusal_names_another_way) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), all_outputs(folder / "auto"))), Succeeds());

  const Outcome outcome =
      run(with(with(demo_clip(), all_outputs(folder / "direct")), {"--read-backend", "direct"}));

  // Not every file system takes direct reads.
  if (outcome.code != 0) {
    EXPECT_THAT(outcome, Fails(5, HasSubstr(".safetensors"), HasSubstr("--read-backend pread")));
  } else {
    EXPECT_TRUE(same_outputs(folder / "auto", folder / "direct"));
  }
}

TEST(SameBytes, come_whatever_becomes_of_the_page_cache) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), all_outputs(folder / "auto"))), Succeeds());

  for (const char* backend : {"mmap", "pread"}) {
    for (const char* policy : {"keep", "drop", "prefetch"}) {
      const std::string name = std::string(backend) + policy;
      ASSERT_THAT(run(with(with(demo_clip(), all_outputs(folder / name)),
                           {"--read-backend", backend, "--cache", policy})),
                  Succeeds());
      EXPECT_TRUE(same_outputs(folder / "auto", folder / name)) << name;
    }
  }
}

TEST(Encode, gives_the_same_bytes_with_every_read_backend) {
  TemporaryFolder folder;
  for (const char* backend : {"auto", "mmap", "pread", "uring"}) {
    ASSERT_THAT(run({"encode", "--model", demo_model(), "--text-encoder", demo_text_encoder(), "--prompt",
                     "a red circle", "--threads", "1", "--read-backend", backend, "--cache", "drop", "-o",
                     folder / backend}),
                Succeeds());
    EXPECT_TRUE(same_bytes(folder / "auto", folder / backend)) << backend;
  }
}

TEST(SameBytes, come_from_two_runs_of_one_command_on_several_threads) {
  TemporaryFolder folder;

  for (const char* name : {"one", "two"})
    ASSERT_THAT(run(with(with(demo_clip(), all_outputs(folder / name)), {"--threads", "2"})), Succeeds());

  EXPECT_TRUE(same_outputs(folder / "one", folder / "two"));
}

TEST(SameBytes, come_with_guidance_from_the_request_in_the_old_videos_metadata) {
  TemporaryFolder folder;
  const Arguments dev = {
      "--variant",    "dev",    "--steps",   "3",   "--guidance",        "2",
      "--stg-blocks", "1,3",    "--rescale", "0.5", "--negative-prompt", "a \"blue\" square",
      "--fps",        "23.976", "--seed",    "7",   "--audio-guidance",  "1.3"};
  ASSERT_THAT(run(with(with(demo_clip(), dev), all_outputs(folder / "old"))), Succeeds());

  ASSERT_THAT(run(with({"generate", "--from", folder / "old/clip.mp4", "--model", demo_model(),
                        "--text-encoder", demo_text_encoder()},
                       all_outputs(folder / "new"))),
              Succeeds());

  EXPECT_TRUE(same_outputs(folder / "old", folder / "new"));
}

TEST(SameBytes, become_others_when_a_flag_beside_from_says_so) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "old.mp4"})), Succeeds());
  const Arguments again = {"generate",   "--from",         folder / "old.mp4", "--model",
                           demo_model(), "--text-encoder", demo_text_encoder()};

  ASSERT_THAT(run(with(again, {"-o", folder / "new.mp4", "--seed", "43"})), Succeeds());
  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "direct.mp4", "--seed", "43"})), Succeeds());

  EXPECT_FALSE(same_bytes(folder / "old.mp4", folder / "new.mp4"));
  EXPECT_TRUE(same_bytes(folder / "direct.mp4", folder / "new.mp4"));
}

TEST(Metadata, tells_the_request_to_inspect) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "clip.mp4", "--seed", "18446744073709551615"})),
              Succeeds());

  const Outcome text = run({"inspect", folder / "clip.mp4"});
  const Outcome object = run({"inspect", folder / "clip.mp4", "--json"});

  EXPECT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, HasSubstr("a red circle moves right"));
  const json request = json::parse(object.out).at("metadata").at("sluice").at("request");
  EXPECT_EQ(request.at("prompt"), "a red circle moves right on a navy background, high tone");
  EXPECT_EQ(request.at("seed"), 18446744073709551615u);
  EXPECT_EQ(request.at("sigmas").size(), 8u);
}

TEST(Metadata, survives_a_prompt_of_ten_thousand_bytes_with_quotes) {
  TemporaryFolder folder;
  std::string prompt;
  while (prompt.size() < 10000) prompt += "a \"red\" circle's \\ path; \u00fc \u6f22 = #1\n";
  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "clip.mp4", "--prompt", prompt})), Succeeds());

  const Outcome object = run({"inspect", folder / "clip.mp4", "--json"});

  EXPECT_EQ(json::parse(object.out).at("metadata").at("sluice").at("request").at("prompt"), prompt);
}

TEST(Metadata, names_no_folder_in_any_layout) {
  TemporaryFolder folder;
  const std::string secret = folder.path().filename();
  fs::create_directory_symlink(demo_text_encoder(), folder / "text");
  fs::create_symlink(demo_model(), folder / "model.safetensors");
  copy_fixture_folder(folder / "model");

  ASSERT_THAT(run(with(demo_clip(), {"--model", folder / "model.safetensors", "--text-encoder",
                                     folder / "text", "-o", folder / "file.mp4"})),
              Succeeds());
  ASSERT_THAT(run(with(fixture_clip(folder / "model"), {"-o", folder / "folder.mp4"})), Succeeds());
  ASSERT_THAT(run(with(fixture_clip(folder / "model/"), {"-o", folder / "slash.mp4"})), Succeeds());

  for (const char* name : {"file.mp4", "folder.mp4", "slash.mp4"})
    EXPECT_THAT(file_content(folder / name), Not(HasSubstr(secret))) << name;
}

TEST(Metadata, is_left_out_when_asked) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), {"-o", folder / "clip.mp4", "--no-metadata"})), Succeeds());

  const Outcome object = run({"inspect", folder / "clip.mp4", "--json"});

  EXPECT_THAT(json::parse(object.out).at("metadata"), ::testing::IsEmpty());
  EXPECT_THAT(file_content(folder / "clip.mp4"), Not(HasSubstr("circle")));
  EXPECT_THAT(
      run(with(demo_clip(), {"--from", folder / "clip.mp4", "-o", folder / "new.mp4"})),
      Refuses(3, HasSubstr("clip.mp4: the file does not tell how it was made"), HasSubstr("--no-metadata")));
}

}  // namespace
}  // namespace sluice::test
