// Adapters beside the weights: as if merged, whatever the weights are stored as, and nothing is rewritten.
#include "compute/adapters.h"
#include "compute/given_world.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Latents = std::map<std::string, Values>;

double largest_difference(const Latents& one, const Latents& other) {
  double most = 0;
  for (const auto& [name, values] : one) {
    EXPECT_EQ(values.size(), other.at(name).size());
    for (std::size_t i = 0; i < values.size(); ++i)
      most = std::max(most, std::abs(double{values[i]} - other.at(name)[i]));
  }
  return most;
}

double distance(const Latents& one, const Latents& other) {
  double squares = 0;
  for (const auto& [name, values] : one)
    for (std::size_t i = 0; i < values.size(); ++i)
      squares += std::pow(double{values[i]} - other.at(name)[i], 2);
  return std::sqrt(squares);
}

class WithAdapter : public ::testing::Test {
 protected:
  WithAdapter() { write_adapter(adapter_, pairs_); }

  Latents latents(const Arguments& more, const fs::path& model = demo_model()) {
    const Outcome outcome = run(short_clip(
        with({"--model", model, "--latents", folder_ / "made", "--overwrite", "--report", folder_ / "report"},
             more)));
    EXPECT_THAT(outcome, Succeeds());
    return read_values(folder_ / "made");
  }
  std::string at(double strength) const { return adapter_.string() + ":" + std::to_string(strength); }

  TemporaryFolder folder_;
  std::vector<AdapterPair> pairs_ = small_adapter();
  fs::path adapter_ = folder_ / "style.safetensors";
};

TEST_F(WithAdapter, is_the_merged_checkpoint_within_a_hundred_thousandth) {
  write_merged_model(folder_ / "merged.safetensors", pairs_, 0.8);
  const Arguments all = {"--sigmas", "1,0.99375,0.9875,0.98125,0.975,0.909375,0.725,0.421875"};
  const Latents merged = latents(all, folder_ / "merged.safetensors"), without = latents(all);

  for (const Arguments& staging : {Arguments{}, Arguments{"--stage-from", "disk", "--read-backend", "pread"},
                                   Arguments{"--stage-from", "memory", "--read-backend", "pread"}}) {
    const Latents made = latents(with(with(all, staging), {"--lora", at(0.8)}));
    EXPECT_LT(largest_difference(made, merged), 1e-5);
    EXPECT_GT(largest_difference(made, without), 0.01);
  }
  EXPECT_EQ(latents(with(all, {"--lora", at(0)})), without);
}

TEST_F(WithAdapter, several_add_up) {
  const Latents once = latents({"--lora", at(0.8)});
  const fs::path other = folder_ / "other.safetensors";
  write_adapter(other, pairs_, {.prefix = "transformer."});

  const Latents twice = latents({"--lora", at(0.3), "--lora", other.string() + ":0.5"});

  EXPECT_LT(largest_difference(twice, once), 1e-5);
}

TEST_F(WithAdapter, leaves_every_file_as_it_was) {
  const fs::path model = folder_ / "model.safetensors";
  fs::copy(demo_model(), model);
  const std::string base = file_content(model), adapter = file_content(adapter_);

  latents({"--lora", at(1)}, model);

  EXPECT_EQ(file_content(model), base);
  EXPECT_EQ(file_content(adapter_), adapter);
  EXPECT_THAT(folder_.names(),
              ::testing::UnorderedElementsAre("model.safetensors", "style.safetensors", "made", "report"));
}

class OnQuantized : public WithAdapter, public ::testing::WithParamInterface<const char*> {};

// The adapter acts on rounded weights as on the others: what is off is what the rounding did.
TEST_P(OnQuantized, weights_it_is_as_far_off_as_they_are) {
  const fs::path quantized = folder_ / "quantized";
  ASSERT_THAT(run({"quantize", demo_model(), "-o", quantized, "--format", GetParam()}), Succeeds());
  const std::string before = file_content(quantized / "model-00001-of-00001.safetensors");
  const Latents plain = latents({}), rounded = latents({}, quantized);
  const Latents adapted = latents({"--lora", at(0.8)});

  const Latents both = latents({"--lora", at(0.8)}, quantized);

  const double rounding = distance(rounded, plain), effect = distance(adapted, plain);
  EXPECT_GT(rounding, 0);
  EXPECT_LT(distance(both, adapted), 1.5 * rounding);
  EXPECT_GT(distance(both, rounded), 0.7 * effect);
  EXPECT_EQ(latents({"--lora", at(0.8), "--stage-from", "disk", "--read-backend", "pread"}, quantized), both);
  EXPECT_EQ(file_content(quantized / "model-00001-of-00001.safetensors"), before);
}

INSTANTIATE_TEST_SUITE_P(Format, OnQuantized, ::testing::Values("fp8", "nf4"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(WithAdapter, tells_what_matched_and_lists_what_did_not) {
  pairs_.push_back({"transformer_blocks.9.attn1.to_q", 8, 8, Values(32), Values(32)});
  write_adapter(adapter_, pairs_);

  const Outcome outcome =
      run(short_clip({"--lora", adapter_, "--latents", folder_ / "made", "--report", folder_ / "report"}));

  ASSERT_THAT(outcome, Succeeds());
  const std::string left = "diffusion_model.transformer_blocks.9.attn1.to_q.lora_A.weight";
  EXPECT_THAT(outcome.err, HasSubstr("style.safetensors: 2 tensors fit no matrix of the model: " + left));
  const json report = read_json(folder_ / "report");
  const json& row = report.at("request").at("adapters").at(0);
  EXPECT_EQ(row.at("file"), "style.safetensors");
  EXPECT_EQ(row.at("matched"), pairs_.size() - 1);
  EXPECT_THAT(row.at("unmatched"),
              ElementsAre(left, "diffusion_model.transformer_blocks.9.attn1.to_q.lora_B.weight"));
  EXPECT_EQ(row.at("ranks"), json({kAdapterRank, kAdapterRank}));
  EXPECT_THAT(report.at("warnings"), Contains(HasSubstr(left)));
}

TEST_F(WithAdapter, another_models_is_refused_with_both_shapes_or_the_first_name) {
  auto refused = [&](const fs::path& file, const ::testing::Matcher<std::string>& message,
                     const std::string& hint) {
    EXPECT_THAT(run(short_clip({"--lora", file, "--latents", folder_ / "made"})),
                Refuses(3, message, HasSubstr(hint)));
  };
  std::vector<AdapterPair> wide = pairs_;
  wide.front().in *= 2;
  wide.front().down.resize(wide.front().down.size() * 2);
  write_adapter(folder_ / "wide.safetensors", wide);
  std::vector<AdapterPair> strange = pairs_;
  for (AdapterPair& pair : strange) pair.matrix.replace(0, 5, "other");
  write_adapter(folder_ / "strange.safetensors", strange);

  const std::string first = wide.front().matrix;
  refused(folder_ / "wide.safetensors",
          AllOf(HasSubstr("wide.safetensors: an adapter for another model"), HasSubstr(first),
                HasSubstr("the model has [")),
          "trained on this model");
  refused(folder_ / "strange.safetensors",
          HasSubstr("strange.safetensors: an adapter for another model: 0 of " +
                    std::to_string(2 * pairs_.size()) +
                    " tensors match, the first unknown is 'diffusion_model.other"),
          "trained on this model");
  refused(demo_model(), HasSubstr("no adapter (LoRA): none of its"), "give the file of a LoRA");
  refused(earlier_clip() / "latents", HasSubstr("no adapter (LoRA): none of its 2 tensors"),
          "give the file of a LoRA");
  refused(earlier_clip() / "clip.mp4", HasSubstr("clip.mp4: is a video, not a safetensors file"),
          "give the weights");
  refused(folder_ / "nowhere.safetensors", HasSubstr("nowhere.safetensors: no such file"), "check the path");
}

TEST_F(WithAdapter, strengths_are_numbers_within_reason) {
  EXPECT_THAT(run(short_clip({"--lora", adapter_.string() + ":1000", "--latents", folder_ / "made"})),
              Refuses(2, HasSubstr("--lora strength 1000 is not between -100 and 100")));
  EXPECT_THAT(run(short_clip({"--lora", adapter_.string() + ":nan", "--latents", folder_ / "made"})),
              Refuses(2, HasSubstr("--lora strength nan is not between -100 and 100")));
  EXPECT_THAT(run(short_clip({"--lora", ":0.5", "--latents", folder_ / "made"})),
              Refuses(2, HasSubstr("--lora ':0.5' names no file")));
}

// Adapters that take a clip as reference.
class ControlAdapter : public WithAdapter {
 protected:
  ControlAdapter() {
    write_adapter(adapter_, pairs_, {.metadata = {{"reference_downscale_factor", "1"}}});
    write_adapter(half_, pairs_, {.metadata = {{"reference_downscale_factor", "2"}}});
  }

  fs::path half_ = folder_ / "half.safetensors";
  fs::path clip_ = earlier_clip() / "clip.mp4";
};

TEST_F(ControlAdapter, follows_its_reference_as_strongly_as_asked) {
  const Arguments control = {"--lora", adapter_, "--reference", clip_};
  const Latents followed = latents(control);

  EXPECT_NE(latents(with(control, {"--reference", clip_.string() + ":0.5"})), followed);
  EXPECT_NE(latents(with(control, {"--reference-attention", "0.5"})), followed);
  EXPECT_NE(latents({"--lora", half_, "--reference", clip_}), followed);
  EXPECT_EQ(latents(with(control, {"--stage-from", "disk", "--read-backend", "pread"})), followed);
  EXPECT_THAT(read_json(folder_ / "report").at("warnings"), IsEmpty());
}

TEST_F(ControlAdapter, and_a_reference_need_each_other) {
  auto refused = [&](const Arguments& more, const std::string& message, const std::string& hint) {
    EXPECT_THAT(run(short_clip(with(more, {"--latents", folder_ / "made"}))),
                Refuses(2, HasSubstr(message), HasSubstr(hint)));
  };
  refused({"--lora", adapter_}, "style.safetensors: it is a control adapter (IC-LoRA)", "add --reference");
  refused({"--reference", clip_}, "--reference needs an adapter that takes references (IC-LoRA)",
          "add --lora");
  refused({"--lora", adapter_, "--lora", half_, "--reference", clip_},
          "half.safetensors: it takes references of 1/2 of the size, another adapter of 1/1",
          "use one of them");
  refused({"--lora", half_, "--reference", clip_, "--width", "96"}, "references of 1/2 of the size",
          "multiples of 64");
  refused({"--lora", adapter_, "--reference", clip_.string() + ":3"}, "clip.mp4: 3 is not between 0 and 1",
          "1 holds fully");
  refused({"--lora", adapter_, "--reference", clip_, "--reference-attention", "2"},
          "--reference-attention: 2 is not between 0 and 1", "1 holds fully");
}

TEST_F(ControlAdapter, that_does_not_say_so_is_taken_as_one_with_a_warning) {
  write_adapter(adapter_, pairs_);

  const Outcome outcome =
      run(short_clip({"--lora", adapter_, "--reference", clip_, "--latents", folder_ / "made"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.err, HasSubstr("none of the adapters says that it takes references"));
}

}  // namespace
}  // namespace sluice::test
