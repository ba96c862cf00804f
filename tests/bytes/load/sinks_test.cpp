#include "support/random_checkpoint.h"
#include "support/throws_error.h"

#include <sluice/error.h>
#include <sluice/sinks.h>

#include <gmock/gmock.h>

#include <random>

namespace sluice {
namespace {

using test::RandomCheckpoint;
using test::SyntheticFile;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A model's parameters: memory with names and shapes.
struct Parameters {
  std::vector<std::string> memory;
  std::vector<Destination> destinations;

  Parameters& add(std::string name, Dtype dtype, std::vector<std::int64_t> shape) {
    Bytes size = dtype_bits(dtype) / 8;
    for (std::int64_t extent : shape) size *= static_cast<Bytes>(extent);
    memory.emplace_back(size, '\xee');
    destinations.push_back({std::move(name), dtype, std::move(shape), {}});
    for (std::size_t i = 0; i < memory.size(); ++i)
      destinations[i].bytes = std::as_writable_bytes(std::span(memory[i]));
    return *this;
  }
};

// Data begins at a multiple of 8, as most tools write it.
SyntheticFile with_aligned_data(SyntheticFile file) {
  return file.pad_header((8 - file.header_text().size() % 8) % 8);
}

SyntheticFile two_tensors() {
  return SyntheticFile().tensor("a", Dtype::BF16, {4, 4}).tensor("b", Dtype::F32, {1, 4});
}

TEST(Dictionary, holds_every_tensor_and_finds_it_by_name) {
  std::mt19937 random(7);
  const RandomCheckpoint checkpoint(random, 3, 20, 100'000);

  const TensorDictionary dictionary = load_dictionary(plan_load(Checkpoint::open(checkpoint.path)));

  EXPECT_EQ(dictionary.entries().size(), checkpoint.contents.size());
  for (const auto& [name, content] : checkpoint.contents) {
    ASSERT_NE(dictionary.find(name), nullptr) << name;
    EXPECT_EQ(text_of(dictionary.find(name)->bytes), content) << name;
  }
  EXPECT_EQ(dictionary.find("nothing"), nullptr);
}

TEST(Dictionary, uses_the_memory_of_the_load_before) {
  const auto file = two_tensors().write();
  const LoadPlan plan = plan_load(Checkpoint::open(file.path()));
  auto slab = std::make_shared<Slab>();
  const auto first = load_dictionary(plan, slab);
  const std::byte* memory = slab->bytes().data();

  const auto second = load_dictionary(plan, slab);

  EXPECT_EQ(slab->bytes().data(), memory);
  EXPECT_EQ(text_of(second.find("b")->bytes).size(), 16u);
}

TEST(SlabLayout, keeps_neighbours_together_at_addresses_that_agree_with_the_file) {
  const auto file = with_aligned_data(two_tensors()).write();
  const Checkpoint checkpoint = Checkpoint::open(file.path());
  const LoadPlan plan = plan_load(checkpoint);

  const SlabLayout layout = lay_out(plan);

  for (std::size_t i = 0; i < plan.targets().size(); ++i) {
    const TensorInfo* tensor = checkpoint.find(plan.targets()[i].name);
    EXPECT_EQ(layout.offsets[i] % 4096, tensor->offset % 4096);
  }
  EXPECT_EQ(layout.offsets[1], layout.offsets[0] + plan.targets()[0].size);
}

TEST(SlabLayout, aligns_tensors_whose_place_in_the_file_does_not_suit_their_dtype) {
  const auto file =
      with_aligned_data(SyntheticFile().tensor("a", Dtype::U8, {1}).tensor("b", Dtype::F32, {4})).write();
  const LoadPlan plan = plan_load(Checkpoint::open(file.path()));

  const SlabLayout layout = lay_out(plan);

  EXPECT_EQ(plan.targets()[1].name, "b");
  EXPECT_EQ(layout.offsets[1] % 64, 0u);
}

TEST(LoadInto, fills_memory_that_exists) {
  const auto file = two_tensors();
  const auto written = file.write();
  Parameters model;
  model.add("b", Dtype::F32, {1, 4}).add("a", Dtype::BF16, {4, 4});

  load_into(plan_load(Checkpoint::open(written.path())), model.destinations);

  EXPECT_EQ(model.memory[1] + model.memory[0], file.data());
}

TEST(LoadInto, lists_everything_that_does_not_match_before_a_byte_is_written) {
  const auto file = two_tensors().tensor("c", Dtype::F32, {2}).tensor("d", Dtype::F32, {2}).write();
  Parameters model;
  model.add("a", Dtype::BF16, {4, 4})
      .add("b", Dtype::F32, {4, 4})
      .add("d", Dtype::F16, {2})
      .add("e", Dtype::F32, {1});

  EXPECT_THAT(
      [&] { load_into(plan_load(Checkpoint::open(file.path())), model.destinations); },
      ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr("1 missing: 'e'"), HasSubstr("1 unexpected: 'c'"),
                                             HasSubstr("'b' is [1, 4], its destination [4, 4]"),
                                             HasSubstr("'d' is F32, its destination F16"))));
  EXPECT_THAT(model.memory, Each(Not(HasSubstr(std::string(1, '\0')))));
}

TEST(LoadInto, skips_unexpected_tensors_when_asked_without_reading_them) {
  const auto file = two_tensors();
  const auto written = file.write();
  Parameters model;
  model.add("b", Dtype::F32, {1, 4});

  const LoadReport report =
      load_into(plan_load(Checkpoint::open(written.path())), model.destinations, UnexpectedTensors::ignore);

  EXPECT_EQ(model.memory[0], file.data().substr(32));
  EXPECT_EQ(report.bytes, 16u);
}

TEST(LoadInto, refuses_two_destinations_of_one_name) {
  const auto file = two_tensors().write();
  Parameters model;
  model.add("a", Dtype::BF16, {4, 4}).add("b", Dtype::F32, {1, 4}).add("b", Dtype::F32, {1, 4});

  EXPECT_THAT([&] { load_into(plan_load(Checkpoint::open(file.path())), model.destinations); },
              ThrowsError(ErrorKind::mismatch, HasSubstr("1 given twice: 'b'")));
}

TEST(LoadToFile, writes_a_file_that_holds_what_the_plan_declares) {
  std::mt19937 random(3);
  const RandomCheckpoint checkpoint(random, 2, 15, 50'000);
  const auto path = checkpoint.folder / "joined.safetensors";

  load_to_file(plan_load(Checkpoint::open(checkpoint.path), {.transforms = Transforms().rename("*", "x.*")}),
               path, {{"key", "value"}});

  const Checkpoint written = Checkpoint::open(path);
  EXPECT_EQ(written.metadata().at("key"), "value");
  EXPECT_EQ(written.tensors().size(), checkpoint.contents.size());
  for (const auto& [name, content] : checkpoint.contents) {
    const TensorInfo* tensor = written.find("x." + name);
    ASSERT_NE(tensor, nullptr) << name;
    std::string bytes(tensor->size, '\0');
    written.read(*tensor, std::as_writable_bytes(std::span(bytes)));
    EXPECT_EQ(bytes, content) << name;
  }
}

TEST(LoadToFile, leaves_nothing_behind_when_it_fails) {
  const auto file = two_tensors().write();
  const LoadPlan plan = plan_load(Checkpoint::open(file.path()));
  std::filesystem::resize_file(file.path(), 100);
  const test::TemporaryFolder folder;

  EXPECT_THROW(load_to_file(plan, folder / "out.safetensors"), Error);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace sluice
