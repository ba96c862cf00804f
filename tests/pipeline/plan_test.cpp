// A plan reads headers: whatever the size of the files, it costs next to nothing.
#include "synth/plan.h"
#include "pipeline/world.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/wide_text_encoder.h"
#include "synth/parameters.h"
#include "synth/sizes.h"

#include <sluice/units.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The published model's names, shapes and metadata, and no byte of data: 43 GiB that take no space.
void write_published_sizes(const fs::path& file) {
  const synth::Sizes sizes = synth::preset("22b");
  std::vector<synth::Component> components;
  for (ltx2::ComponentKind kind : ltx2::kComponentKinds)
    components.push_back(synth::make_component(kind, sizes));
  const synth::Plan plan = synth::plan_single_file(file, components, sizes, {});
  std::vector<TensorInfo> tensors;
  for (const synth::PlannedTensor& tensor : plan.files.at(0).tensors)
    tensors.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.source.shape});
  write_sparse(file, tensors, plan.files.at(0).metadata);
}

class PublishedSizes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "no sanitizer lives in so little address space";
  }
  static void SetUpTestSuite() {
    folder_ = new TemporaryFolder;
    write_published_sizes(file());
  }
  static void TearDownTestSuite() { delete folder_; }
  static fs::path file() { return *folder_ / "ltx-2.3-22b-distilled.safetensors"; }

  // As under `ulimit -v 4000000`: the file itself cannot even be mapped.
  static Outcome run_small(const Arguments& arguments) {
    return run(Start{.arguments = arguments, .address_space = KiB(4'000'000)});
  }

 private:
  static inline TemporaryFolder* folder_ = nullptr;
};

TEST_F(PublishedSizes, are_inspected_in_4_GB_of_address_space) {
  const Outcome outcome = run_small({"inspect", "--json", file()});

  ASSERT_THAT(outcome, Succeeds());
  const json result = json::parse(outcome.out);
  EXPECT_EQ(result.at("model_version"), "2.3.0");
  EXPECT_GT(result.at("tensors").size(), 5000u);
  EXPECT_EQ(result.at("files").at(0).at("bytes"), fs::file_size(file()));
  EXPECT_GT(fs::file_size(file()), GiB(40));
}

TEST_F(PublishedSizes, are_refused_with_a_text_encoder_that_is_too_small_before_anything_is_read) {
  const Outcome outcome = run_small({"plan", "--model", file(), "--text-encoder", demo_text_encoder()});

  EXPECT_THAT(outcome,
              Refuses(3, HasSubstr("the checkpoint needs hidden size 3840"), HasSubstr("hidden size 3840")));
}

TEST_F(PublishedSizes, are_planned_in_4_GB_of_address_space) {
  TemporaryFolder folder;
  // The states of one prompt of 128 tokens in the width that the model takes.
  write_sparse(folder / "inject",
               {{.name = "prompt_embeds", .dtype = Dtype::BF16, .shape = {1, 128, 3840 * 49}}});

  const Outcome outcome = run_small({"plan", "--json", "--model", file(), "--inject", folder / "inject",
                                     "--width", "768", "--height", "512", "--frames", "121"});

  ASSERT_THAT(outcome, Succeeds());
  const json plan = json::parse(outcome.out);
  EXPECT_EQ(plan.at("tokens"), json({{"video", 16 * 16 * 24}, {"audio", 126}, {"text", 1024}, {"prompts", {128}}}));
  std::vector<std::string> phases;
  for (const json& phase : plan.at("phases")) phases.push_back(phase.at("name"));
  EXPECT_THAT(phases, ElementsAre("text", "denoise", "decode sound", "decode video"));
  EXPECT_GT(plan.at("phases").at(1).at("bytes_read").get<Bytes>(), GiB(30));
  EXPECT_EQ(plan.at("request").at("variant"), "distilled");  // by the file's name
}

TEST_F(PublishedSizes, cannot_be_mapped_there_and_mmap_says_so) {
  TemporaryFolder folder;
  write_sparse(folder / "inject",
               {{.name = "prompt_embeds", .dtype = Dtype::BF16, .shape = {1, 128, 3840 * 49}}});

  const Outcome outcome =
      run_small({"generate", "--model", file(), "--inject", folder / "inject", "--width", "64", "--height",
                 "64", "--frames", "9", "--read-backend", "mmap", "-o", folder / "clip.mp4"});

  EXPECT_THAT(outcome, Refuses(5, HasSubstr("cannot map 43."), HasSubstr("--read-backend pread")));
  EXPECT_THAT(folder.names(), ElementsAre("inject"));
}

TEST(Plan, says_what_the_run_then_does) {
  TemporaryFolder folder;
  const Request request = demo_request();

  const json planned = json::parse(plan(request));
  const json report = json::parse(generate(request, {.video = folder / "clip.mp4"}));

  EXPECT_EQ(planned.at("request"), report.at("request"));
  ASSERT_EQ(planned.at("phases").size(), report.at("phases").size());
  for (std::size_t i = 0; i < planned.at("phases").size(); ++i) {
    const json& plan = planned.at("phases")[i];
    const json& phase = report.at("phases")[i];
    EXPECT_EQ(plan.at("name"), phase.at("name"));
    EXPECT_EQ(plan.at("bytes_read"), phase.at("planned").at("bytes_read"));
    EXPECT_LE(phase.at("bytes_read").get<Bytes>(), plan.at("bytes_read").get<Bytes>()) << plan.at("name");
  }
}

}  // namespace
}  // namespace sluice::test
