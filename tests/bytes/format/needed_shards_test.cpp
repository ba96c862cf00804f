// Checkpoint::open with a choice of tensors: only the shards that are needed.
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/load.h>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Names "a" and "d" in one-…, "b" in two-…, "c" in three-…; of the files only what the test writes is there.
TemporaryFolder& write_index(TemporaryFolder& folder) {
  write_file(folder / "model.safetensors.index.json", index_text({{"a", "one.safetensors"},
                                                                  {"b", "two.safetensors"},
                                                                  {"c", "three.safetensors"},
                                                                  {"d", "one.safetensors"}}));
  return folder;
}

auto is_one_of(std::vector<std::string> names) {
  return [names](std::string_view name) { return std::ranges::find(names, name) != names.end(); };
}

TEST(NeededShards, are_opened_alone_and_the_others_need_not_exist) {
  TemporaryFolder folder;
  write_index(folder);
  SyntheticFile two = SyntheticFile().tensor("b", Dtype::U8, {3}).metadata("from", "two");
  two.write_to(folder / "two.safetensors");

  Checkpoint checkpoint = Checkpoint::open(folder.path(), is_one_of({"b"}));

  ASSERT_EQ(checkpoint.shards().size(), 1u);
  EXPECT_EQ(checkpoint.shards()[0].path, folder / "two.safetensors");
  ASSERT_EQ(checkpoint.tensors().size(), 1u);
  std::string bytes(3, '\0');
  checkpoint.read(*checkpoint.find("b"), std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, two.data());
  EXPECT_EQ(checkpoint.find("b")->shard, 0u);
  EXPECT_EQ(checkpoint.metadata().at("from"), "two");
}

TEST(NeededShards, show_all_that_they_hold) {
  TemporaryFolder folder;
  write_index(folder);
  SyntheticFile()
      .tensor("a", Dtype::U8, {1})
      .tensor("d", Dtype::U8, {1})
      .write_to(folder / "one.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {1}).write_to(folder / "two.safetensors");

  Checkpoint checkpoint = Checkpoint::open(folder.path(), is_one_of({"a", "b"}));

  EXPECT_NE(checkpoint.find("d"), nullptr);
  EXPECT_EQ(checkpoint.shards()[checkpoint.find("b")->shard].path, folder / "two.safetensors");
  EXPECT_THAT(checkpoint.warnings(), IsEmpty());
}

TEST(NeededShards, that_are_missing_are_still_refused) {
  TemporaryFolder folder;
  write_index(folder);

  EXPECT_THAT([&] { Checkpoint::open(folder.path(), is_one_of({"c"})); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("three.safetensors: the shard is missing")));
}

TEST(NeededShards, with_a_copy_of_a_tensor_from_a_closed_shard_say_so) {
  TemporaryFolder folder;
  write_index(folder);
  SyntheticFile()
      .tensor("b", Dtype::U8, {1})
      .tensor("c", Dtype::U8, {1})
      .write_to(folder / "two.safetensors");

  Checkpoint checkpoint = Checkpoint::open(folder.path(), is_one_of({"b"}));

  EXPECT_THAT(checkpoint.warnings(), ElementsAre(HasSubstr("takes them from another shard: 'c'")));
  EXPECT_EQ(checkpoint.find("c"), nullptr);
}

TEST(NeededShards, are_none_if_nothing_is_wanted) {
  TemporaryFolder folder;
  write_index(folder);

  Checkpoint checkpoint = Checkpoint::open(folder.path(), is_one_of({}));

  EXPECT_THAT(checkpoint.shards(), IsEmpty());
  EXPECT_THAT(checkpoint.tensors(), IsEmpty());
}

TEST(NeededShards, of_a_single_file_are_that_file) {
  auto file = SyntheticFile().tensor("a", Dtype::U8, {1}).write();

  EXPECT_NE(Checkpoint::open(file.path(), is_one_of({})).find("a"), nullptr);
}

TEST(NeededShards, can_be_chosen_by_the_filter_of_the_load) {
  TemporaryFolder folder;
  write_index(folder);
  SyntheticFile()
      .tensor("a", Dtype::U8, {1})
      .tensor("d", Dtype::U8, {1})
      .write_to(folder / "one.safetensors");
  const TensorFilter filter{.include = {"d"}};

  Checkpoint checkpoint =
      Checkpoint::open(folder.path(), [&](std::string_view name) { return wanted_by(filter, name); });
  LoadPlan plan = plan_load(checkpoint, {.filter = filter});

  ASSERT_EQ(plan.targets().size(), 1u);
  EXPECT_EQ(plan.targets()[0].name, "d");
}

}  // namespace
}  // namespace sluice
