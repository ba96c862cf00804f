// What goes wrong while a run works: it ends with one error, and nothing stands under the final name.
#include "compute/world.h"
#include "support/synthetic_file.h"

#include <gmock/gmock.h>
#include <sys/mount.h>

#include <cmath>
#include <cstring>
#include <fstream>

namespace sluice::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAreArray;

// Makes the first element of a tensor NaN (bf16 and f32 alike: all bits of the exponent, and more).
void spoil(const fs::path& file, std::string_view tensor) {
  const Checkpoint checkpoint = Checkpoint::open(file);
  const TensorInfo* info = checkpoint.find(tensor);
  ASSERT_NE(info, nullptr) << tensor;
  const Bytes width = dtype_bits(info->dtype) / 8;
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(info->offset));
  for (Bytes i = 0; i < width; ++i) stream.put('\x7f' + static_cast<char>(i + 1 < width ? 0x80 : 0));
}

struct Spoilt {
  const char* name;
  const char* tensor;  // of the demo's model
  std::string message;
  std::vector<std::string> left;
};

// What a run is resumed from.
const std::string kWork = "clip.mp4.sluice-work";

void PrintTo(const Spoilt& spoilt, std::ostream* out) {
  *out << spoilt.name;
}

class NonFinite : public ::testing::TestWithParam<Spoilt> {};

TEST_P(NonFinite, weight_ends_the_run_in_the_phase_where_it_shows) {
  TemporaryFolder folder;
  fs::create_directory(folder / "out");
  fs::copy(demo_model(), folder / "model.safetensors");
  spoil(folder / "model.safetensors", GetParam().tensor);

  const Outcome outcome =
      run(with(demo_clip(), {"--model", folder / "model.safetensors", "-o", folder / "out/clip.mp4", "--wav",
                             folder / "out/clip.wav", "--frames-dir", folder / "out/frames", "--trace",
                             folder / "out/trace"}));

  EXPECT_THAT(outcome, Fails(5, HasSubstr(GetParam().message)));
  const fs::path folder_of_work = folder / ("out/" + kWork);
  std::vector<std::string> left;
  for (const auto& entry : fs::directory_iterator(folder / "out")) left.push_back(entry.path().filename());
  EXPECT_THAT(left, UnorderedElementsAreArray(GetParam().left));
  EXPECT_EQ(fs::exists(folder_of_work / "latents.safetensors"), left.size() == 2);  // in the decoders
}

INSTANTIATE_TEST_SUITE_P(
    In, NonFinite,
    ::testing::Values(
        Spoilt{"transformer",
               "model.diffusion_model.transformer_blocks.1.attn1.to_q.weight",
               "video latents after step 0 of 8: ",
               {kWork}},
        Spoilt{"transformers_sound",
               "model.diffusion_model.audio_proj_out.weight",
               "audio latents after step 0 of 8: ",
               {kWork}},
        Spoilt{"connectors",
               "model.diffusion_model.video_embeddings_connector.learnable_registers",
               "the text context of the video: ",
               {}},
        Spoilt{"video_vae", "vae.decoder.conv_out.conv.bias", "frame 0: ", {kWork, "trace"}},
        Spoilt{"audio_vae",
               "audio_vae.decoder.conv_out.conv.bias",
               "the decoded mel spectrogram: ",
               {kWork, "trace"}},
        Spoilt{"vocoder", "vocoder.vocoder.conv_post.weight", "the decoded sound: ", {kWork, "trace"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(NonFiniteText, state_ends_the_run_in_the_text_phase) {
  TemporaryFolder folder;
  fs::copy(demo_text_encoder(), folder / "text", fs::copy_options::recursive);
  spoil(folder / "text/model.safetensors", "language_model.model.layers.2.mlp.down_proj.weight");

  const Outcome outcome =
      run(with(demo_clip(), {"--text-encoder", folder / "text", "-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome, Fails(5, HasSubstr("the text encoder's state 3 of 7: ")));
  EXPECT_THAT(folder.names(), ElementsAre("text"));
}

TEST(NonFiniteInjection, is_refused_before_any_work_naming_file_and_tensor) {
  for (const char* tensor : {"video_noise", "audio_noise", "prompt_embeds"}) {
    TemporaryFolder folder;
    fs::copy(fixture_inject(), folder / "inject.safetensors");
    spoil(folder / "inject.safetensors", tensor);

    const Outcome outcome =
        run(with(fixture_clip(), {"--inject", folder / "inject.safetensors", "-o", folder / "clip.mp4"}));

    EXPECT_THAT(outcome, Refuses(5, HasSubstr("inject.safetensors: '" + std::string(tensor) + "': 1 of "),
                                 HasSubstr("finite")));
    EXPECT_THAT(folder.names(), ElementsAre("inject.safetensors"));
  }
}

TEST(Injection, is_refused_where_it_does_not_fit_the_request) {
  TemporaryFolder folder;
  SyntheticFile().tensor("noise", Dtype::F32, {1}).write_to(folder / "unknown");
  SyntheticFile().tensor("prompt_attention_mask", Dtype::I64, {1, 4}).write_to(folder / "alone");
  auto refused = [&](const Arguments& flags, const std::string& message) {
    EXPECT_THAT(run(with(with(fixture_clip(), {"-o", folder / "clip.mp4"}), flags)),
                Refuses(3, HasSubstr(message)));
  };

  refused({"--frames", "25"},
          "'video_noise' is [1, 4, 3, 2, 3], the request needs [1, 4, 4, 2, 3] or [1, 24, 4]");
  refused({"--inject", folder / "unknown"}, "'noise' cannot be injected");
  refused({"--inject", folder / "alone"}, "'prompt_attention_mask' without 'prompt_embeds'");
  refused({"--inject", folder / "missing"}, "missing: no such file");
}

// A step of the fixture takes about a millisecond: the file shrinks long before the last of these.
Arguments many_steps() {
  return {"--variant", "dev", "--steps", "1000", "--stg", "0", "--guidance", "1", "--modality-guidance", "1"};
}

TEST(Shrinking, checkpoint_is_noticed_while_it_is_mapped_and_read) {
  for (const char* backend : {"mmap", "auto"}) {
    TemporaryFolder folder;
    fs::copy(fixture_file(), folder / "model.safetensors");
    Program program({.arguments = with(with(fixture_clip(folder / "model.safetensors"), many_steps()),
                                       {"--read-backend", backend, "-o", folder / "clip.mp4"})});

    ASSERT_TRUE(program.wait_for("denoise      1/1000"));
    fs::resize_file(folder / "model.safetensors", 200'000);
    const Outcome outcome = program.finish();

    EXPECT_THAT(outcome,
                Fails(3, AllOf(HasSubstr("model.safetensors: the file shrank"), HasSubstr("1084122")),
                      HasSubstr("unchanged")));
    EXPECT_THAT(folder.names(), Not(Contains("clip.mp4")));
    EXPECT_THAT(folder.names(), Not(Contains(HasSubstr(".partial"))));
  }
}

// The whole of a run's outputs beside a quota that the latents fit into and the clip does not.
TEST(FullDisk, keeps_the_latents_and_they_decode_elsewhere) {
  TemporaryFolder folder;
  fs::create_directory(folder / "full");
  const Arguments command = with(demo_clip(), {"--no-metadata", "-o", folder / "full/clip.mp4"});

  const Outcome outcome = run({.arguments = command, .file_size = 10'000});

  EXPECT_THAT(outcome, Fails(5, HasSubstr("clip.mp4: "), HasSubstr("write")));
  EXPECT_THAT(outcome.err, HasSubstr("the latents are kept in " + (folder / ("full/" + kWork)).string()));
  ASSERT_EQ(std::distance(fs::directory_iterator(folder / "full"), {}), 1);
  ASSERT_THAT(run(with(demo_clip(), {"--no-metadata", "-o", folder / "clip.mp4", "--decode-latents",
                                     folder / ("full/" + kWork + "/latents.safetensors")})),
              Succeeds());
  ASSERT_THAT(run(with(command, {"-o", folder / "whole.mp4"})), Succeeds());
  EXPECT_TRUE(same_bytes(folder / "clip.mp4", folder / "whole.mp4"));
}

TEST(FullDisk, spoils_no_other_output_either) {
  for (const char* flag : {"--trace", "--wav", "--frames-dir"}) {
    TemporaryFolder folder;

    const Outcome outcome = run({.arguments = with(demo_clip(), {flag, folder / "out"}), .file_size = 3'000});

    EXPECT_THAT(outcome, Fails(5, HasSubstr("out"), HasSubstr("ulimit -f"))) << flag;
    EXPECT_THAT(folder.names(), IsEmpty()) << flag;
  }
}

class TinyDisk {
 public:
  explicit TinyDisk(const fs::path& folder) : folder_(folder) {
    fs::create_directory(folder);
    mounted_ = ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=32k") == 0;
  }
  ~TinyDisk() {
    if (mounted_) ::umount(folder_.c_str());
  }
  TinyDisk(const TinyDisk&) = delete;
  TinyDisk& operator=(const TinyDisk&) = delete;
  bool mounted() const { return mounted_; }

 private:
  fs::path folder_;
  bool mounted_ = false;
};

TEST(FullDisk, of_its_own_says_so_and_keeps_the_latents) {
  TemporaryFolder folder;
  TinyDisk disk(folder / "disk");
  if (!disk.mounted()) GTEST_SKIP() << "may not mount";

  const Outcome outcome = run(with(demo_clip(), {"-o", folder / "disk/clip.mp4"}));

  EXPECT_THAT(outcome, Fails(5, HasSubstr("clip.mp4: no space left on device"), HasSubstr("disk is full")));
  EXPECT_TRUE(fs::exists(folder / ("disk/" + kWork + "/latents.safetensors")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder / "disk"), {}), 1);
}

TEST(Latents, decode_to_what_the_run_itself_made) {
  TemporaryFolder folder;
  ASSERT_THAT(
      run(with(demo_clip(), {"-o", folder / "clip.mp4", "--no-metadata", "--latents", folder / "latents"})),
      Succeeds());

  ASSERT_THAT(run({"generate", "--model", demo_model(), "--decode-latents", folder / "latents", "--width",
                   "64", "--height", "64", "--frames", "17", "--threads", "1", "--no-metadata", "-o",
                   folder / "again.mp4"}),
              Succeeds());

  EXPECT_TRUE(same_bytes(folder / "clip.mp4", folder / "again.mp4"));
}

TEST(Latents, of_another_size_are_refused) {
  TemporaryFolder folder;
  ASSERT_THAT(run(with(demo_clip(), {"--latents", folder / "latents"})), Succeeds());

  const Outcome outcome = run(with(
      demo_clip(), {"--decode-latents", folder / "latents", "--width", "96", "-o", folder / "clip.mp4"}));

  EXPECT_THAT(outcome,
              Fails(3, HasSubstr("'video_latents' is [1, 64, 3, 2, 2], the request needs [1, 64, 3, 2, 3]"),
                    HasSubstr("width")));
  EXPECT_THAT(folder.names(), ElementsAre("latents"));
}

}  // namespace
}  // namespace sluice::test
