#include "weights/lora/lora_file.h"

#include "support/temporary_folder.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <limits>
#include <string>
#include <vector>

namespace sluice::weights {
namespace {

using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Metadata = std::map<std::string, std::string>;

const std::string kQuery = "transformer_blocks.0.attn1.to_q", kTime = "time_embed.linear";

LoraTargets targets() {
  return {.matrices = {{kQuery + ".weight", {6, 4}}, {kTime + ".weight", {9, 5}}},
          .other_names = {{kQuery + ".weight", kQuery + ".weight"},
                          {"adaln_single.linear.weight", kTime + ".weight"}}};
}

at::Tensor number(double value, at::ScalarType dtype = at::kFloat) {
  return at::full({}, value, at::TensorOptions().dtype(dtype));
}

class LoraFiles : public ::testing::Test {
 protected:
  LoraFile open(const NamedTensors& tensors, const Metadata& metadata = {}, double strength = 1) const {
    write_tensors(path_, tensors, metadata);
    return open_lora(path_, strength, targets());
  }

  // Both halves of a layer in a style.
  static NamedTensors pair(const std::string& layer, std::int64_t in, std::int64_t out, std::int64_t rank,
                           const std::string& down = ".lora_A.weight",
                           const std::string& up = ".lora_B.weight") {
    return {{layer + down, at::zeros({rank, in})}, {layer + up, at::zeros({out, rank})}};
  }
  static NamedTensors query(std::int64_t rank) { return pair(kQuery, 4, 6, rank); }

  static NamedTensors joined(NamedTensors one, const NamedTensors& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "adapter.safetensors";
};

struct Style {
  const char *query, *time, *down, *up;
};

TEST_F(LoraFiles, find_the_same_pairs_in_every_layout) {
  const char *kA = ".lora_A.weight", *kB = ".lora_B.weight", *kDown = ".lora_down.weight",
             *kUp = ".lora_up.weight";
  for (const auto& [query, time, down, up] : std::vector<Style>{
           {"transformer.transformer_blocks.0.attn1.to_q", "transformer.time_embed.linear", kA, kB},
           {"transformer_blocks.0.attn1.to_q", "time_embed.linear", ".lora_A.default.weight",
            ".lora_B.default.weight"},
           {"base_model.model.transformer_blocks.0.attn1.to_q", "base_model.model.time_embed.linear", kA, kB},
           {"diffusion_model.transformer_blocks.0.attn1.to_q", "diffusion_model.adaln_single.linear", kA, kB},
           {"model.diffusion_model.transformer_blocks.0.attn1.to_q",
            "model.diffusion_model.adaln_single.linear", kDown, kUp},
           {"transformer_blocks.0.attn1.to_q", "adaln_single.linear", kDown, kUp},
           {"lora_unet_transformer_blocks_0_attn1_to_q", "lora_unet_adaln_single_linear", kDown, kUp},
           {"lora_unet_transformer_blocks_0_attn1_to_q", "lora_unet_time_embed_linear", kDown, kUp}}) {
    SCOPED_TRACE(std::string(query) + down);
    const LoraFile file = open(joined(pair(query, 4, 6, 2, down, up), pair(time, 5, 9, 3, down, up)));

    ASSERT_EQ(file.pairs.size(), 2u);
    const LoraPair& of_query = file.pairs.at(kQuery + ".weight");
    EXPECT_EQ(of_query.parameter, kQuery + ".weight");
    EXPECT_EQ(of_query.down.name, std::string(query) + down);
    EXPECT_EQ(of_query.up.name, std::string(query) + up);
    EXPECT_EQ(of_query.rank, 2);
    EXPECT_EQ(file.pairs.at(kTime + ".weight").rank, 3);
    EXPECT_EQ(file.lowest_rank, 2);
    EXPECT_EQ(file.highest_rank, 3);
    EXPECT_THAT(file.unmatched, IsEmpty());
  }
}

TEST_F(LoraFiles, list_what_belongs_to_no_matrix) {
  const NamedTensors rest = {{"text_encoder.layer.lora_A.weight", at::zeros({2, 4})},
                             {"text_encoder.layer.lora_B.weight", at::zeros({4, 2})},
                             {"text_encoder.layer.alpha", number(2)},
                             {"something", at::zeros({3})},
                             {"lone.alpha", number(1)}};

  const LoraFile file = open(joined(query(2), rest));

  EXPECT_EQ(file.pairs.size(), 1u);
  EXPECT_THAT(file.unmatched,
              ElementsAre("lone.alpha", "something", "text_encoder.layer.alpha",
                          "text_encoder.layer.lora_A.weight", "text_encoder.layer.lora_B.weight"));
}

TEST_F(LoraFiles, take_alpha_from_a_tensor_of_any_dtype_and_strength_from_the_caller) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble, at::kLong, at::kInt}) {
    const LoraFile file =
        open(joined(query(4), {{kQuery + ".alpha", number(8, dtype)}}), {{"ss_network_alpha", "1"}}, 0.25);

    EXPECT_EQ(file.pairs.at(kQuery + ".weight").factor, 0.25 * 8 / 4) << at::toString(dtype);
    EXPECT_EQ(file.strength, 0.25);
  }
}

TEST_F(LoraFiles, take_alpha_from_metadata) {
  struct Case {
    Metadata metadata;
    double factor;
  };
  for (const auto& [metadata, factor] : std::vector<Case>{
           {{}, 1},
           {{{"ss_network_alpha", "8"}}, 2},
           {{{"ss_network_alpha", "None"}}, 1},
           {{{"lora_alpha", "2.0"}}, 0.5},
           {{{"lora_adapter_metadata", R"({"transformer.lora_alpha": 16, "transformer.r": 4})"}}, 4},
           {{{"lora_adapter_metadata", R"({"lora_alpha": 16, "alpha_pattern": {"attn1.to_q": 2}})"}}, 0.5},
           {{{"lora_adapter_metadata", R"({"lora_alpha": 16, "alpha_pattern": {"ttn1.to_q": 2}})"}}, 4},
           {{{"lora_adapter_metadata", R"({"alpha_pattern": {"to_q": 2, "attn1.to_q": 1}})"}}, 0.25},
           {{{"lora_adapter_metadata", R"({"lora_alpha": 16, "use_rslora": true})"}}, 8}}) {
    EXPECT_EQ(open(query(4), metadata).pairs.at(kQuery + ".weight").factor, factor)
        << ::testing::PrintToString(metadata);
  }
}

TEST_F(LoraFiles, are_found_in_folders_with_the_configuration_beside) {
  write_tensors(folder_ / "other.safetensors", {{"x", at::zeros({1})}});
  write_tensors(folder_ / "pytorch_lora_weights.safetensors", query(3));
  EXPECT_EQ(open_lora(folder_.path(), 1, targets()).highest_rank, 3);

  write_tensors(folder_ / "adapter_model.safetensors", query(2));
  test::write_file(folder_ / "adapter_config.json",
                   R"({"lora_alpha": 6, "base_model_name_or_path": "Lightricks/LTX-2"})");
  const LoraFile file = open_lora(folder_.path(), 1, targets());
  EXPECT_EQ(file.highest_rank, 2);
  EXPECT_EQ(file.pairs.at(kQuery + ".weight").factor, 3);
  EXPECT_EQ(file.base_version, "Lightricks/LTX-2");
}

TEST_F(LoraFiles, tell_what_their_metadata_says) {
  const LoraFile plain = open(query(2)),
                 control = open(query(2), {{"reference_downscale_factor", "2"}, {"model_version", "2.3.0"}});

  EXPECT_FALSE(plain.reference_downscale_factor);
  EXPECT_EQ(plain.base_version, "");
  EXPECT_EQ(control.reference_downscale_factor, 2);
  EXPECT_EQ(control.base_version, "2.3.0");
}

TEST_F(LoraFiles, of_which_nothing_matches_are_refused_in_one_line) {
  EXPECT_THAT(
      [&] {
        open(joined(pair("unet.b", 4, 6, 2), pair("unet.a", 4, 6, 2)), {{"model_version", "SDXL"}});
      },
      ThrowsError(
          ErrorKind::mismatch,
          AllOf(HasSubstr("adapter.safetensors: an adapter for another model (it says it is for 'SDXL')"),
                HasSubstr("0 of 4 tensors match, the first unknown is 'unet.a.lora_A.weight'"),
                Not(HasSubstr("\n"))),
          HasSubstr("trained on this model")));
}

TEST_F(LoraFiles, without_an_adapter_are_refused) {
  EXPECT_THAT(
      [&] {
        open({{"a.weight", at::zeros({3})}, {"b.weight", at::zeros({3})}});
      },
      ThrowsError(ErrorKind::bad_input,
                  AllOf(HasSubstr("no adapter (LoRA)"), HasSubstr("2 tensors"), HasSubstr("'a.weight'"))));
}

TEST_F(LoraFiles, of_other_shapes_are_refused_with_both) {
  EXPECT_THAT(
      [&] { open(joined(pair(kQuery, 8, 12, 2), pair(kTime, 5, 9, 2))); },
      ThrowsError(ErrorKind::mismatch,
                  AllOf(HasSubstr("another model"), HasSubstr("attn1.to_q.lora_A.weight' is for [12, 8]"),
                        HasSubstr("the model has [6, 4]"), Not(HasSubstr("time_embed")))));
}

TEST_F(LoraFiles, are_refused_with_everything_that_is_wrong) {
  NamedTensors tensors = {{kQuery + ".lora_A.weight", at::zeros({2, 4})},
                          {kTime + ".lora_A.weight", at::zeros({2, 5})},
                          {kTime + ".lora_B.weight", at::zeros({9, 3})},
                          {"x.dora_scale", at::zeros({3})},
                          {"y.hada_w1_a", at::zeros({3})},
                          {"y.hada_w1_b", at::zeros({3})}};
  EXPECT_THAT(
      [&] {
        open(tensors, {{"reference_downscale_factor", "0"}, {"lora_alpha", "much"}});
      },
      ThrowsError(
          ErrorKind::bad_input,
          AllOf(HasSubstr("DoRA, as 'x.dora_scale', is not supported"),
                HasSubstr("LoHa, as 'y.hada_w1_a', is not supported"),
                HasSubstr("the other half of 'transformer_blocks.0.attn1.to_q.lora_A.weight' is missing"),
                HasSubstr("have no common rank"), HasSubstr("lora_alpha 'much' is no finite number"),
                HasSubstr("reference_downscale_factor '0' is no positive integer"))));
}

TEST_F(LoraFiles, list_eight_problems_at_most) {
  NamedTensors tensors;
  LoraTargets model;
  for (int i = 0; i < 11; ++i) {
    model.matrices[fmt::format("layer.{}.weight", i)] = {6, 4};
    tensors.emplace_back(fmt::format("layer.{}.lora_A.weight", i), at::zeros({2, 4}));
  }
  write_tensors(path_, tensors);
  EXPECT_THAT([&] { open_lora(path_, 1, model); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("and 3 more")));
}

struct Refused {
  const char* what;
  NamedTensors tensors;
  Metadata metadata;
  const char* message;
};

TEST_F(LoraFiles, with_a_part_that_cannot_be_used_are_refused) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::string alpha = kQuery + ".alpha";
  for (const auto& [what, tensors, metadata, message] : std::vector<Refused>{
           {"convolution",
            {{kQuery + ".lora_A.weight", at::zeros({2, 4, 3, 3})},
             {kQuery + ".lora_B.weight", at::zeros({6, 2})}},
            {},
            "a convolution's LoRA"},
           {"dtype",
            {{kQuery + ".lora_A.weight", at::zeros({2, 4}, at::kInt)},
             {kQuery + ".lora_B.weight", at::zeros({6, 2})}},
            {},
            "is in I32"},
           {"rank 0", query(0), {}, "no common rank"},
           {"alpha without a value", joined(query(2), {{alpha, number(kNan)}}), {}, "no finite number"},
           {"alphas", joined(query(2), {{alpha, at::zeros({2})}}), {}, "[2], no single number"},
           {"two names", joined(query(2), pair("transformer." + kQuery, 4, 6, 2)), {}, "are both for"},
           {"two adapters",
            joined(query(2), pair(kQuery, 4, 6, 2, ".lora_A.other.weight", ".lora_B.other.weight")),
            {},
            "are the same part of a layer"},
           {"JSON", query(2), {{"lora_adapter_metadata", "[1"}}, "no JSON object"},
           {"text", query(2), {{"lora_adapter_metadata", R"({"lora_alpha": "8"})"}}, "no finite number"},
           {"dora", query(2), {{"lora_adapter_metadata", R"({"use_dora": true})"}}, "DoRA is not supported"},
           {"expression",
            query(2),
            {{"lora_adapter_metadata", R"({"alpha_pattern": {"attn.*": 8}})"}},
            "is an expression"}}) {
    SCOPED_TRACE(what);
    EXPECT_THAT(
        [&] { open(tensors, metadata); },
        ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("adapter.safetensors"), HasSubstr(message))));
  }
}

TEST_F(LoraFiles, are_not_opened_with_a_strength_that_is_none) {
  EXPECT_THAT([&] { open(query(2), {}, std::numeric_limits<double>::infinity()); },
              ThrowsError(ErrorKind::usage, HasSubstr("strength of inf")));
}

}  // namespace
}  // namespace sluice::weights
