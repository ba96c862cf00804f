#include "weights/stage.h"

#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <filesystem>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A block with three parameters, one of which the file has under another shape, beside tensors of others.
struct Block {
  at::Tensor weight, bias, scale;
  ParameterGroup parameters{"block", {}};

  explicit Block(const std::string& name) {
    ParameterScope scope(parameters, name);
    scope.add("weight", weight, {300, 200});
    scope.add("bias", bias, {300});
    scope.add("scale", scale, {1, 300});
  }
};

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

class Source : public ::testing::Test {
 protected:
  Source() {
    SyntheticFile file;
    for (const char* block : {"0", "1"}) {
      file.tensor(fmt::format("odd.{}", block), Dtype::U8, {3});
      file.tensor(fmt::format("{}.bias", block), Dtype::F32, {300});
      file.tensor(fmt::format("{}.scale", block), Dtype::BF16, {300});
      file.tensor(fmt::format("{}.weight", block), Dtype::F32, {300, 200});
    }
    file.write_to(path_);
    table_ = whole_checkpoint("component", Checkpoint::open(path_));
    values_ = read_tensors(path_);
  }

  std::unique_ptr<WeightSource> read_with(ReadBackend backend,
                                          std::vector<const ParameterGroup*> groups = {}) {
    if (groups.empty()) groups = {&first_.parameters, &second_.parameters};
    return make_staged_source(
        table_, plan_stage(table_, groups),
        {.read = {.backend = backend, .threads = 1, .chunk = KiB(64), .pool = KiB(256)},
         .loaded = [this](const LoadReport& report) { loaded_.push_back(report.bytes); },
         .cancel = &cancel_});
  }
  std::unique_ptr<WeightSource> mapped() {
    return make_weight_source(table_, std::make_shared<bytes::MappedCheckpoint>(table_.checkpoint));
  }

  void expect_values(const Block& block, const std::string& name) const {
    EXPECT_EQ(bytes_of(block.weight), bytes_of(values_.at(name + ".weight")));
    EXPECT_EQ(bytes_of(block.bias), bytes_of(values_.at(name + ".bias")));
    EXPECT_EQ(bytes_of(block.scale), bytes_of(values_.at(name + ".scale")));
    EXPECT_EQ(block.scale.sizes(), at::IntArrayRef({1, 300}));
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  ComponentTable table_;
  TensorMap values_;
  CancelToken cancel_;
  std::vector<Bytes> loaded_;
  Block first_{"0"}, second_{"1"};
};

constexpr Bytes kBlockBytes = 300 * 4 + 300 * 2 + 300 * 200 * 4;

TEST_F(Source, gives_the_same_tensors_mapped_and_by_every_backend) {
  for (int way = 0; way < 5; ++way) {
    const std::unique_ptr<WeightSource> source =
        way == 0 ? mapped()
                 : read_with(std::array{ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                                        ReadBackend::uring}[static_cast<std::size_t>(way) - 1]);
    for (Block* block : {&second_, &first_}) {
      const WeightLease lease = source->acquire(block->parameters);
      expect_values(*block, block == &first_ ? "0" : "1");
    }
    EXPECT_EQ(source->bytes_read(), 2 * kBlockBytes);
    EXPECT_NO_THROW(source->check());
  }
}

TEST_F(Source, gives_tensors_for_the_time_of_a_lease) {
  for (const auto& source : {mapped(), read_with(ReadBackend::pread)}) {
    {
      const WeightLease lease = source->acquire(first_.parameters);
      EXPECT_TRUE(first_.weight.defined());
    }
    EXPECT_FALSE(first_.weight.defined());
  }
}

TEST_F(Source, reads_a_group_once_by_one_load_and_keeps_it) {
  const void* place = nullptr;
  {
    const auto source = read_with(ReadBackend::pread);
    for (int i = 0; i < 3; ++i) {
      const WeightLease lease = source->acquire(first_.parameters);
      if (i == 0) place = first_.weight.data_ptr();
      EXPECT_EQ(first_.weight.data_ptr(), place);
    }
    source->acquire(second_.parameters);
  }

  EXPECT_THAT(loaded_, ElementsAre(kBlockBytes, kBlockBytes));
}

TEST_F(Source, gives_one_tensor_to_parameters_that_name_it_twice) {
  table_.tensors.emplace("tied", table_.tensors.at("0.bias"));
  at::Tensor bias, tied;
  ParameterGroup group{"group", {}};
  ParameterScope(group).add("0.bias", bias, {300});
  ParameterScope(group).add("tied", tied, {300});
  const auto source = read_with(ReadBackend::pread, {&group});

  const WeightLease lease = source->acquire(group);

  EXPECT_EQ(bytes_of(bias), bytes_of(values_.at("0.bias")));
  EXPECT_EQ(bytes_of(tied), bytes_of(values_.at("0.bias")));
}

TEST_F(Source, names_file_and_tensor_of_a_read_that_fails_and_reads_again_when_asked) {
  int calls = 0;
  {
    FaultySyscalls counting;
    read_with(ReadBackend::pread, {&first_.parameters})->acquire(first_.parameters);
    calls = counting.read_calls();
  }
  const auto source = read_with(ReadBackend::pread, {&first_.parameters});
  {
    FaultySyscalls faults;
    faults.fail_nth_read(calls, EIO);
    EXPECT_THAT(
        [&] { source->acquire(first_.parameters); },
        ThrowsError(ErrorKind::io, AllOf(HasSubstr("model.safetensors"), HasSubstr("tensor '0.weight'"),
                                         HasSubstr("input/output error"))));
  }
  EXPECT_EQ(source->bytes_read(), 0u);

  const WeightLease lease = source->acquire(first_.parameters);

  expect_values(first_, "0");
}

TEST_F(Source, stops_in_the_middle_of_a_group_when_it_is_cancelled) {
  const auto source = read_with(ReadBackend::pread);
  FaultySyscalls faults;
  faults.before_nth_read(1, [this] { cancel_.cancel(); });

  EXPECT_THAT([&] { source->acquire(first_.parameters); },
              ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
}

TEST_F(Source, finds_a_file_that_changed_since_it_was_opened) {
  const auto one = mapped(), other = read_with(ReadBackend::pread);
  { const WeightLease lease = other->acquire(first_.parameters); }

  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);

  EXPECT_THAT([&] { one->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("model.safetensors")));
  EXPECT_THAT([&] { other->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("model.safetensors")));
}

TEST_F(Source, gives_and_reads_the_rows_of_a_range_alone) {
  at::Tensor weight, bias;
  ParameterGroup group{"rows", {}};
  ParameterScope(group).add("0.weight", weight, {300, 200}, {.begin = 7, .count = 11});
  ParameterScope(group).add("0.bias", bias, {300}, {.begin = 7, .count = 11});
  for (const auto& source : {mapped(), read_with(ReadBackend::pread, {&group})}) {
    const WeightLease lease = source->acquire(group);

    EXPECT_EQ(weight.sizes(), at::IntArrayRef({11, 200}));
    EXPECT_EQ(bytes_of(weight), bytes_of(values_.at("0.weight").narrow(0, 7, 11)));
    EXPECT_EQ(bytes_of(bias), bytes_of(values_.at("0.bias").narrow(0, 7, 11)));
    EXPECT_EQ(source->bytes_read(), 11u * 201 * 4);
  }
}

TEST_F(Source, reads_single_rows_of_a_table_in_any_order_each_once) {
  at::Tensor slot;
  const Parameter table{"1.weight", {300, 200}, &slot};
  const std::int64_t ids[] = {299, 0, 17, 0};
  for (const auto& source : {mapped(), read_with(ReadBackend::pread)}) {
    FaultySyscalls counting;
    const at::Tensor rows = source->rows(table, ids);

    EXPECT_EQ(bytes_of(rows),
              bytes_of(values_.at("1.weight").index_select(0, at::tensor(at::ArrayRef(ids)))));
    EXPECT_EQ(counting.total_read(), 3u * 800);
    EXPECT_EQ(source->bytes_read(), 3u * 800);
  }
}

TEST_F(Source, refuses_rows_of_a_quantized_table_and_rows_that_it_lacks) {
  at::Tensor slot;
  const Parameter table{"1.weight", {300, 200}, &slot};
  const std::int64_t outside[] = {1, 300};
  EXPECT_THAT([&] { mapped()->rows(table, outside); },
              ThrowsError(ErrorKind::internal, AllOf(HasSubstr("300"), HasSubstr("'1.weight'"))));

  table_.quantized["1.weight"] = {QuantFormat::nf4, std::nullopt, {}};
  EXPECT_THAT([&] { mapped()->rows(table, {}); },
              ThrowsError(ErrorKind::bad_input,
                          AllOf(HasSubstr("model.safetensors"), HasSubstr("'1.weight'"), HasSubstr("nf4"))));
}

// 130 rows of 64 values in each format.
TEST(QuantizedSource, gives_values_and_scales_of_the_rows_that_are_asked_for) {
  const auto file = SyntheticFile()
                        .tensor("fp8", Dtype::F8_E4M3, {130, 64})
                        .tensor("fp8.scale", Dtype::F32, {1})
                        .tensor("nf4", Dtype::U8, {130 * 32, 1})
                        .tensor("nf4.absmax", Dtype::F32, {130})
                        .tensor("bare", Dtype::F8_E4M3, {130, 64})
                        .write();
  ComponentTable table = whole_checkpoint("component", Checkpoint::open(file.path()));
  const TensorMap values = read_tensors(file.path());
  table.quantized["fp8"] = {QuantFormat::fp8, table.tensors.at("fp8.scale"), {}};
  table.quantized["nf4"] = {QuantFormat::nf4, table.tensors.at("nf4.absmax"), {}};
  table.quantized["bare"] = {QuantFormat::fp8, std::nullopt, {}};
  at::Tensor slots[3], scales[3];
  ParameterGroup group{"rows", {}};
  for (int i = 0; i < 3; ++i) {
    const char* name = std::array{"fp8", "nf4", "bare"}[static_cast<std::size_t>(i)];
    ParameterScope(group).add_matrix(name, slots[i], scales[i], {130, 64}, {.begin = 3, .count = 100});
  }
  for (const auto& source :
       {make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint)),
        make_staged_source(table, plan_stage(table, std::array{static_cast<const ParameterGroup*>(&group)}),
                           {})}) {
    const WeightLease lease = source->acquire(group);

    EXPECT_EQ(slots[0].scalar_type(), at::kFloat8_e4m3fn);
    EXPECT_EQ(slots[0].sizes(), at::IntArrayRef({100, 64}));
    EXPECT_EQ(bytes_of(slots[0]), bytes_of(values.at("fp8").narrow(0, 3, 100)));
    EXPECT_EQ(bytes_of(scales[0]), bytes_of(values.at("fp8.scale")));
    EXPECT_EQ(slots[1].sizes(), at::IntArrayRef({3200}));
    EXPECT_EQ(bytes_of(slots[1]), bytes_of(values.at("nf4").narrow(0, 3 * 32, 3200)));
    EXPECT_EQ(bytes_of(scales[1]), bytes_of(values.at("nf4.absmax").narrow(0, 3, 100)));
    EXPECT_FALSE(scales[2].defined());
    EXPECT_EQ(source->bytes_read(), 6400u + 4 + 3200 + 400 + 6400);
  }
}

TEST(QuantizedSource, widens_vectors_that_were_cast_to_fp8) {
  const auto file = SyntheticFile().tensor("bias", Dtype::F8_E4M3, {256}).write();
  ComponentTable table = whole_checkpoint("component", Checkpoint::open(file.path()));
  table.quantized["bias"] = {QuantFormat::fp8, std::nullopt, {}};
  at::Tensor bias;
  ParameterGroup group{"group", {}};
  ParameterScope(group).add("bias", bias, {256});
  const at::Tensor wanted = read_tensors(file.path()).at("bias").to(at::kFloat);
  for (const auto& source :
       {make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint)),
        make_staged_source(table, plan_stage(table, std::array{static_cast<const ParameterGroup*>(&group)}),
                           {})}) {
    const WeightLease lease = source->acquire(group);

    EXPECT_EQ(bias.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(at::allclose(bias.to(at::kFloat), wanted, 0, 0, /*equal_nan=*/true));
  }
}

TEST_F(Source, reads_nothing_for_a_group_without_parameters) {
  const ParameterGroup empty{"empty", {}};
  const auto source = read_with(ReadBackend::pread, {&empty});

  const WeightLease lease = source->acquire(empty);

  EXPECT_EQ(source->bytes_read(), 0u);
}

}  // namespace
}  // namespace sluice::weights
