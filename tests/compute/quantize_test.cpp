// The command: what it prints, what it refuses, and that killing it costs nothing but time.
#include "compute/world.h"

#include <sluice/checkpoint.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <csignal>
#include <fstream>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Arguments quantize(const fs::path& output, const Arguments& more = {}) {
  return with({"quantize", demo_model(), "-o", output, "--format", "nf4"}, more);
}

std::size_t complete_shards(const fs::path& folder) {
  std::error_code ignored;
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    count += entry.path().filename().string().starts_with("model-");
  return count;
}

TEST(QuantizeCommand, makes_a_folder_that_is_whole_and_tells_what_it_did) {
  const TemporaryFolder folder;

  const Outcome outcome = run(quantize(folder / "out", {"--json", "--quiet"}));

  ASSERT_THAT(outcome, Succeeds());
  const json result = json::parse(outcome.out);
  for (const char* key :
       {"bytes_in", "bytes_out", "seconds", "bytes_per_second", "quantized_tensors", "peak_anonymous"})
    EXPECT_GT(result.at(key).get<double>(), 0) << key;
  EXPECT_THAT(run({"verify", "--deep", (folder / "out").string()}), Succeeds());
  EXPECT_THAT(run({"inspect", (folder / "out").string()}).out, HasSubstr("quantization"));
}

TEST(QuantizeCommand, killed_again_and_again_gives_the_bytes_of_an_undisturbed_run) {
  const TemporaryFolder folder;
  ASSERT_THAT(run(quantize(folder / "undisturbed", {"--shard-size", "64KiB"})), Succeeds());
  const Arguments again = quantize(folder / "killed", {"--shard-size", "64KiB"});
  std::size_t kills = 0;
  for (std::size_t shards = 1; kills < 3; shards += 3) {
    Program program({.arguments = again});
    while (complete_shards(folder / "killed.partial") < shards && !fs::exists(folder / "killed"))
      program.wait_for_work();
    program.send(SIGKILL);
    if (program.finish().signal != SIGKILL) break;
    ++kills;
    EXPECT_FALSE(fs::exists(folder / "killed"));
  }
  ASSERT_GT(kills, 0u);

  const Outcome outcome = run(with(again, {"--json", "--quiet"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_GT(json::parse(outcome.out).at("shards_taken_up"), 0);
  EXPECT_TRUE(same_files(folder / "killed", folder / "undisturbed"));
  EXPECT_FALSE(fs::exists(folder / "killed.partial"));
}

TEST(QuantizeCommand, goes_on_only_with_what_it_was_begun_with) {
  const TemporaryFolder folder;
  // A kill may come when everything is done: then once more.
  for (int attempt = 0; attempt < 20 && !fs::exists(folder / "out.partial"); ++attempt) {
    fs::remove_all(folder / "out");
    Program program({.arguments = quantize(folder / "out", {"--shard-size", "32KiB"})});
    while (complete_shards(folder / "out.partial") < 1 && !fs::exists(folder / "out"))
      program.wait_for_work();
    program.send(SIGKILL);
    program.finish();
  }
  ASSERT_TRUE(fs::exists(folder / "out.partial"));

  EXPECT_THAT(run(quantize(folder / "out", {"--shard-size", "32KiB", "--format", "fp8"})),
              Refuses(2, HasSubstr("was begun with --format nf4, not fp8"), HasSubstr("remove the folder")));
}

TEST(QuantizeCommand, refuses_before_it_writes) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "there");
  write_file(folder / "there/model.safetensors", "x");
  const fs::path out = folder / "out";

  EXPECT_THAT(run(quantize(folder / "there")),
              Refuses(2, HasSubstr("there: exists already"), HasSubstr("--overwrite")));
  EXPECT_THAT(run(quantize(out, {"--components", "transformr"})),
              Refuses(2, HasSubstr("'transformr'"), HasSubstr("did you mean transformer?")));
  EXPECT_THAT(run(quantize(out, {"--format", "int8"})), Refuses(2, HasSubstr("int8"), HasSubstr("fp8, nf4")));
  EXPECT_THAT(run(quantize(out, {"--memory-limit", "10MiB"})), Refuses(4, HasSubstr("of memory")));
  EXPECT_THAT(run({"quantize", folder / "none", "-o", out, "--format", "nf4"}),
              Refuses(3, HasSubstr("none")));
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("there"));
}

TEST(QuantizeCommand, of_a_quantized_folder_names_the_tensor_that_shows_it) {
  const TemporaryFolder folder;
  ASSERT_THAT(run(quantize(folder / "once", {"--format", "fp8"})), Succeeds());

  EXPECT_THAT(run({"quantize", folder / "once", "-o", folder / "twice", "--format", "nf4"}),
              Refuses(3, AllOf(HasSubstr("already quantized: tensor '"), HasSubstr("F8_E4M3"))));
}

TEST(QuantizeCommand, replaces_a_folder_when_told_to) {
  const TemporaryFolder folder;
  ASSERT_THAT(run(quantize(folder / "out", {"--format", "fp8"})), Succeeds());

  ASSERT_THAT(run(quantize(folder / "out", {"--overwrite"})), Succeeds());

  EXPECT_THAT(file_content(folder / "out/quantization.json"), HasSubstr("nf4"));
  EXPECT_THAT(folder.names(), ::testing::ElementsAre("out"));
}

TEST(QuantizeCommand, interrupted_says_that_it_goes_on) {
  const TemporaryFolder folder;
  Program program({.arguments = quantize(folder / "out", {"--shard-size", "16KiB"})});
  while (complete_shards(folder / "out.partial") < 1) program.wait_for_work();
  program.send(SIGINT);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("what is done is in"), HasSubstr("goes on")));
}

TEST(QuantizeCommand, finds_values_that_are_not_finite) {
  const TemporaryFolder folder;
  fs::copy_file(demo_model(), folder / "bad.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(demo_model());
  const TensorInfo* tensor = checkpoint.find("model.diffusion_model.transformer_blocks.0.attn1.to_q.weight");
  ASSERT_NE(tensor, nullptr);
  {
    std::fstream file(folder / "bad.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(tensor->offset));
    for (Bytes i = 0; i < dtype_bits(tensor->dtype) / 8; ++i) file.put('\xff');  // NaN in every format
  }

  EXPECT_THAT(
      run({"quantize", folder / "bad.safetensors", "-o", folder / "out", "--format", "nf4", "--quiet"}),
      Refuses(5, HasSubstr("bad.safetensors: tensor 'model.diffusion_model.transformer_blocks.0.attn1."
                           "to_q.weight' has NaN at element 0")));
}

}  // namespace
}  // namespace sluice::test
