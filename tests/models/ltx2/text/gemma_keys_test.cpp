#include "models/ltx2/text/gemma_keys.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>

namespace sluice::ltx2 {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;

class GemmaKeysOnDisk : public testing::TestWithParam<const char*> {};

TEST_P(GemmaKeysOnDisk, are_the_model_s_under_any_prefix_on_disk) {
  const std::string prefix = GetParam();
  auto file = test::SyntheticFile()
                  .tensor(prefix + "embed_tokens.weight", Dtype::BF16, {4, 2})
                  .tensor(prefix + "layers.0.mlp.up_proj.weight", Dtype::BF16, {4, 2})
                  .tensor(prefix + "norm.weight", Dtype::BF16, {2})
                  .write();

  weights::ComponentTable table = gemma_table(Checkpoint::open(file.path()));

  EXPECT_THAT(table.tensors, ElementsAre(Key("embed_tokens.weight"), Key("layers.0.mlp.up_proj.weight"),
                                         Key("norm.weight")));
  EXPECT_EQ(table.tensors.at("norm.weight").name, prefix + "norm.weight");
}

INSTANTIATE_TEST_SUITE_P(, GemmaKeysOnDisk,
                         testing::Values("language_model.model.", "model.language_model.", "model.", ""));

TEST(GemmaKeys, leave_vision_and_output_head_out_with_a_reason) {
  auto file = test::SyntheticFile()
                  .tensor("language_model.lm_head.weight", Dtype::BF16, {4, 2})
                  .tensor("model.vision_tower.patch.weight", Dtype::BF16, {4})
                  .tensor("multi_modal_projector.weight", Dtype::BF16, {4})
                  .write();
  weights::ComponentTable table = gemma_table(Checkpoint::open(file.path()));

  weights::Accounting accounting = weights::account(table, {}, gemma_ignored());

  EXPECT_THAT(accounting.ignored, ElementsAre(Pair("hidden states are taken, no text is generated", 1),
                                              Pair("prompts hold no pictures", 2)));
}

TEST(GemmaKeys, that_come_to_one_name_are_refused_naming_both) {
  auto file = test::SyntheticFile()
                  .tensor("model.norm.weight", Dtype::BF16, {2})
                  .tensor("norm.weight", Dtype::BF16, {2})
                  .write();

  EXPECT_THAT([&] { gemma_table(Checkpoint::open(file.path())); },
              test::ThrowsError(ErrorKind::mismatch,
                                AllOf(HasSubstr("'model.norm.weight'"), HasSubstr("'norm.weight'"))));
}

}  // namespace
}  // namespace sluice::ltx2
