#include "weights/lora/lora_source.h"

#include "aten/low_rank.h"
#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <deque>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::HasSubstr;

constexpr LoraResidence kResidences[] = {LoraResidence::mapped, LoraResidence::memory, LoraResidence::disk};
constexpr std::int64_t kIn = 64, kOut = 96;
constexpr Bytes kRankBytes = (kIn + kOut) * 4;  // of a pair
constexpr Bytes kModelBytes = 3 * (2 * kIn + 1) * kOut * 4;

struct Block {
  at::Tensor first, second, scales, bias;
  LowRanks of_first, of_second;
  ParameterGroup parameters;

  explicit Block(int index) {
    parameters.name = fmt::format("block {}", index);
    const ParameterScope scope(parameters, std::to_string(index));
    scope.add_matrix("first", first, scales, {kOut, kIn}, {}, &of_first);
    scope.add_matrix("second", second, scales, {kOut, kIn}, {}, &of_second);
    scope.add("bias", bias, {kOut});
  }
};

// A model of three blocks and two adapters: one for both matrices of blocks 0 and 2, with ranks 3 and 5, one
// for the first matrix of blocks 0 and 1, of rank 2.
class LoraSourceOf : public ::testing::TestWithParam<LoraResidence> {
 protected:
  LoraSourceOf() {
    at::manual_seed(9);
    NamedTensors model, one, other;
    for (int i = 0; i < 3; ++i) {
      blocks_.emplace_back(i);
      order_.push_back(&blocks_.back().parameters);
      for (const char* name : {"first", "second"})
        model.emplace_back(fmt::format("{}.{}", i, name), at::randn({kOut, kIn}));
      model.emplace_back(fmt::format("{}.bias", i), at::randn({kOut}));
    }
    for (const int i : {0, 2}) {
      add_pair(one, fmt::format("{}.first", i), 3);
      add_pair(one, fmt::format("{}.second", i), 5);
    }
    for (const int i : {0, 1}) add_pair(other, fmt::format("{}.first", i), 2);
    write_tensors(folder_ / "model.safetensors", model);
    one_ = write("one.safetensors", one, 0.5);
    other_ = write("other.safetensors", other, 2);
    table_ = whole_checkpoint("model", Checkpoint::open(folder_ / "model.safetensors"));
  }

  static void add_pair(NamedTensors& tensors, const std::string& name, std::int64_t rank) {
    tensors.emplace_back(name + ".down", at::randn({rank, kIn}));
    tensors.emplace_back(name + ".up", at::randn({kOut, rank}));
  }

  LoraFile write(const char* name, const NamedTensors& tensors, double factor) {
    write_tensors(folder_ / name, tensors);
    LoraFile file{.checkpoint = Checkpoint::open(folder_ / name)};
    for (std::size_t i = 0; i < tensors.size(); i += 2) {
      const TensorInfo down = *file.checkpoint.find(tensors[i].first);
      const std::string parameter = down.name.substr(0, down.name.size() - 5);
      file.pairs[parameter] = {.parameter = parameter,
                               .down = down,
                               .up = *file.checkpoint.find(tensors[i + 1].first),
                               .rank = down.shape[0],
                               .factor = factor};
    }
    for (const auto& [key, value] : tensors) values_[fmt::format("{}/{}", name, key)] = value;
    return file;
  }

  std::unique_ptr<WeightSource> base() const {
    return make_weight_source(table_, std::make_shared<bytes::MappedCheckpoint>(table_.checkpoint));
  }
  std::unique_ptr<WeightSource> source(std::vector<const LoraFile*> adapters = {}) const {
    if (adapters.empty()) adapters = {&one_, &other_};
    return make_lora_source(base(), adapters, order_, GetParam(), {.read = {.backend = ReadBackend::pread}});
  }

  void expect_pair(const LowRank& pair, const std::string& name, float factor) const {
    EXPECT_TRUE(at::equal(pair.down, values_.at(name + ".down"))) << name;
    EXPECT_TRUE(at::equal(pair.up, values_.at(name + ".up"))) << name;
    EXPECT_EQ(pair.factor, factor) << name;
  }

  TemporaryFolder folder_;
  ComponentTable table_;
  TensorMap values_;
  std::deque<Block> blocks_;
  std::vector<const ParameterGroup*> order_;
  LoraFile one_, other_;
};

TEST_P(LoraSourceOf, lends_the_pairs_of_a_group_in_the_order_of_the_adapters) {
  const auto source = this->source();
  for (int pass = 0; pass < 3; ++pass) {
    {
      const WeightLease lease = source->acquire(blocks_[0].parameters);
      ASSERT_EQ(blocks_[0].of_first.size(), 2u);
      ASSERT_EQ(blocks_[0].of_second.size(), 1u);
      expect_pair(blocks_[0].of_first[0], "one.safetensors/0.first", 0.5F);
      expect_pair(blocks_[0].of_first[1], "other.safetensors/0.first", 2);
      expect_pair(blocks_[0].of_second[0], "one.safetensors/0.second", 0.5F);
      EXPECT_TRUE(blocks_[0].bias.defined());
    }
    {
      const WeightLease lease = source->acquire(blocks_[1].parameters);
      ASSERT_EQ(blocks_[1].of_first.size(), 1u);
      EXPECT_TRUE(blocks_[1].of_second.empty());
      expect_pair(blocks_[1].of_first[0], "other.safetensors/1.first", 2);
    }
    const WeightLease lease = source->acquire(blocks_[2].parameters);
    ASSERT_EQ(blocks_[2].of_first.size(), 1u);
    expect_pair(blocks_[2].of_second.at(0), "one.safetensors/2.second", 0.5F);
  }
}

TEST_P(LoraSourceOf, takes_pairs_away_with_the_lease) {
  const auto source = this->source();
  { const WeightLease lease = source->acquire(blocks_[0].parameters); }

  EXPECT_TRUE(blocks_[0].of_first.empty());
  EXPECT_TRUE(blocks_[0].of_second.empty());
  EXPECT_FALSE(blocks_[0].first.defined());
}

TEST_P(LoraSourceOf, reads_what_its_plan_says) {
  const LoraFile* adapters[] = {&one_, &other_};
  const LoraBytes planned = lora_bytes(adapters, order_, GetParam());
  const auto source = this->source();

  auto pass = [&] {
    for (const ParameterGroup* group : order_) source->acquire(*group);
    return source->bytes_read();
  };
  const Bytes first = pass();

  EXPECT_EQ(planned.once, kRankBytes * (2 * (3 + 5) + 2 * 2));
  EXPECT_EQ(planned.again, 0u);  // as many slots as groups
  EXPECT_EQ(first, kModelBytes + planned.once);
  EXPECT_EQ(pass(), first);
  EXPECT_EQ(planned.page_cache, GetParam() == LoraResidence::mapped ? planned.once : 0);
  EXPECT_EQ(planned.anonymous >= planned.once, GetParam() != LoraResidence::mapped);
}

TEST_P(LoraSourceOf, finds_a_changed_file_of_an_adapter) {
  const auto source = this->source();
  { const WeightLease lease = source->acquire(blocks_[0].parameters); }
  EXPECT_NO_THROW(source->check());

  const auto path = folder_ / "other.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);

  EXPECT_THAT([&] { source->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("other.safetensors")));
}

TEST_P(LoraSourceOf, finds_a_changed_file_of_the_model) {
  const auto source = this->source();
  const auto path = folder_ / "model.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);

  EXPECT_THAT([&] { source->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("model.safetensors")));
}

TEST_P(LoraSourceOf, changes_no_byte_of_any_file) {
  std::vector<std::string> before;
  const std::vector<std::string> names = {"model.safetensors", "one.safetensors", "other.safetensors"};
  for (const std::string& name : names) before.push_back(test::file_content(folder_ / name));

  const auto source = this->source();
  for (const ParameterGroup* group : order_) source->acquire(*group);

  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(test::file_content(folder_ / names[i]), before[i]) << names[i];
}

TEST_P(LoraSourceOf, gives_rows_of_the_model) {
  const std::int64_t ids[] = {5, 2};
  const at::Tensor rows = source()->rows(blocks_[1].parameters.parameters[0], ids);

  EXPECT_TRUE(at::equal(rows, base()->rows(blocks_[1].parameters.parameters[0], ids)));
}

TEST_P(LoraSourceOf, lends_the_rows_that_a_group_takes_of_a_matrix) {
  at::Tensor values, scales;
  LowRanks adapters;
  ParameterGroup group{"rows", {}};
  ParameterScope(group).add_matrix("1.first", values, scales, {kOut, kIn}, {.begin = 7, .count = 11},
                                   &adapters);
  const std::vector<const ParameterGroup*> order = {&blocks_[0].parameters, &group};
  const LoraFile* files[] = {&other_};
  const auto source = make_lora_source(base(), files, order, GetParam());

  const WeightLease lease = source->acquire(group);

  ASSERT_EQ(adapters.size(), 1u);
  EXPECT_TRUE(at::equal(adapters[0].down, values_.at("other.safetensors/1.first.down")));
  EXPECT_TRUE(at::equal(adapters[0].up, values_.at("other.safetensors/1.first.up").narrow(0, 7, 11)));
}

TEST_P(LoraSourceOf, refuses_pairs_that_nobody_would_get) {
  at::Tensor slot;
  ParameterGroup group{"block 0", {}};
  ParameterScope(group).add("0.first", slot, {kOut, kIn});
  const std::vector<const ParameterGroup*> without_place = {&group}, too_few = {&blocks_[0].parameters};
  const LoraFile* files[] = {&other_};

  EXPECT_THAT([&] { make_lora_source(base(), files, without_place, GetParam()); },
              ThrowsError(ErrorKind::internal, HasSubstr("'0.first', which has no place")));
  EXPECT_THAT([&] { make_lora_source(base(), files, too_few, GetParam()); },
              ThrowsError(ErrorKind::internal, HasSubstr("'1.first', which no group has")));
}

INSTANTIATE_TEST_SUITE_P(Residences, LoraSourceOf, ::testing::ValuesIn(kResidences));

class StagedLoraSource : public LoraSourceOf {};

TEST_P(StagedLoraSource, lends_nothing_where_a_read_fails_and_reads_again_when_asked) {
  const auto source = this->source({&other_});
  {
    FaultySyscalls faults;
    faults.fail_nth_read(1, EIO);
    EXPECT_THAT([&] { source->acquire(blocks_[0].parameters); },
                ThrowsError(ErrorKind::io, HasSubstr("other.safetensors")));
  }
  EXPECT_FALSE(blocks_[0].first.defined());
  EXPECT_TRUE(blocks_[0].of_first.empty());

  const WeightLease lease = source->acquire(blocks_[0].parameters);

  EXPECT_EQ(blocks_[0].of_first.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Residences, StagedLoraSource,
                         ::testing::Values(LoraResidence::memory, LoraResidence::disk));

// An adapter for ten equal groups, of which two are in memory at once.
TEST(LoraFromDisk, takes_two_groups_and_reads_all_for_each_pass) {
  const TemporaryFolder folder;
  constexpr int kBlocks = 10;
  std::deque<Block> blocks;
  std::vector<const ParameterGroup*> order;
  NamedTensors model, tensors;
  for (int i = 0; i < kBlocks; ++i) {
    blocks.emplace_back(i);
    order.push_back(&blocks.back().parameters);
    for (const char* name : {"first", "second"})
      model.emplace_back(fmt::format("{}.{}", i, name), at::zeros({kOut, kIn}));
    model.emplace_back(fmt::format("{}.bias", i), at::zeros({kOut}));
    tensors.emplace_back(fmt::format("{}.first.lora_A.weight", i), at::full({32, kIn}, i, at::kFloat));
    tensors.emplace_back(fmt::format("{}.first.lora_B.weight", i), at::full({kOut, 32}, -i, at::kFloat));
  }
  write_tensors(folder / "model.safetensors", model);
  write_tensors(folder / "adapter.safetensors", tensors);
  LoraFile file{.checkpoint = Checkpoint::open(folder / "adapter.safetensors")};
  for (int i = 0; i < kBlocks; ++i) {
    const std::string parameter = fmt::format("{}.first", i);
    file.pairs[parameter] = {.parameter = parameter,
                             .down = *file.checkpoint.find(parameter + ".lora_A.weight"),
                             .up = *file.checkpoint.find(parameter + ".lora_B.weight"),
                             .rank = 32,
                             .factor = 1};
  }
  const ComponentTable table = whole_checkpoint("model", Checkpoint::open(folder / "model.safetensors"));
  const LoraFile* files[] = {&file};
  const Bytes block = kRankBytes * 32;
  const LoraBytes planned = lora_bytes(files, order, LoraResidence::disk);
  const auto source = make_lora_source(
      make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint)), files, order,
      LoraResidence::disk, {.read = {.backend = ReadBackend::pread}, .passes = 2});

  for (int pass = 0; pass < 2; ++pass) {
    for (int i = 0; i < kBlocks; ++i) {
      const auto index = static_cast<std::size_t>(i);
      const WeightLease lease = source->acquire(blocks[index].parameters);
      ASSERT_EQ(blocks[index].of_first.size(), 1u);
      EXPECT_TRUE(at::all(blocks[index].of_first[0].down == i).item<bool>());
      EXPECT_TRUE(at::all(blocks[index].of_first[0].up == -i).item<bool>());
    }
  }

  EXPECT_GE(planned.anonymous, 2 * block);
  EXPECT_LT(planned.anonymous, 3 * block);  // two, from whole pages to whole pages
  EXPECT_EQ(planned.once, kBlocks * block);
  EXPECT_EQ(planned.again, kBlocks * block);
  const Bytes model_bytes = kBlocks * (2 * kIn + 1) * kOut * 4;
  EXPECT_EQ(source->bytes_read(), model_bytes + planned.once + planned.again);
}

}  // namespace
}  // namespace sluice::weights
