#include "weights/stage.h"

#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Random groups over a random file: matrices of any dtype and size, quantized ones, rows of a shared matrix,
// tensors at odd addresses.
class Component {
 public:
  explicit Component(std::mt19937& random, std::size_t groups = 0) : random_(random) {
    if (groups == 0) groups = 1 + random() % 7;
    SyntheticFile file;
    for (std::size_t i = 0; i < groups; ++i) add_group(file, i);
    add_shared(file);
    file.write_to(path);
    table = whole_checkpoint("component", Checkpoint::open(path));
    for (const auto& [weight, format] : quantized_) quantize(weight, format);
    values = read_tensors(path);
  }

  std::vector<const ParameterGroup*> order() const {
    std::vector<const ParameterGroup*> order;
    for (const ParameterGroup& group : groups) order.push_back(&group);
    return order;
  }

  // Every leased tensor of the group has the file's bytes.
  ::testing::AssertionResult holds(std::size_t group) const {
    for (const Expected& expected : expected_.at(group)) {
      const std::string_view wanted =
          bytes_of(values.at(expected.tensor)).substr(expected.offset, expected.size);
      if (expected.slot->defined() && bytes_of(*expected.slot) == wanted) continue;
      return ::testing::AssertionFailure() << groups[group].name << ": " << expected.tensor;
    }
    return ::testing::AssertionSuccess();
  }

  TemporaryFolder folder;
  const std::filesystem::path path = folder / "model.safetensors";
  ComponentTable table;
  TensorMap values;
  std::deque<ParameterGroup> groups;

 private:
  struct Expected {
    std::string tensor;
    Bytes offset, size;
    const at::Tensor* slot;
  };

  at::Tensor& slot() { return slots_.emplace_back(); }

  void expect(const std::string& tensor, const at::Tensor& slot, Bytes size, Bytes offset = 0) {
    expected_.back().push_back({tensor, offset, size, &slot});
  }

  void add_group(SyntheticFile& file, std::size_t index) {
    groups.push_back({fmt::format("group {}", index), {}});
    expected_.emplace_back();
    const ParameterScope scope(groups.back(), std::to_string(index));
    // Some groups are small, and so stay.
    const std::int64_t scale = random_() % 4 == 0 ? 1 : 40;
    for (std::size_t i = 0, count = 1 + random_() % 4; i < count; ++i) {
      const std::string name = std::to_string(i), full = fmt::format("{}.{}", index, i);
      const std::int64_t rows = 1 + static_cast<std::int64_t>(random_() % 50) * scale;
      if (random_() % 3 == 0)
        file.tensor(full + ".odd", Dtype::U8, {1 + static_cast<std::int64_t>(random_() % 9)});
      at::Tensor& values = slot();
      at::Tensor& scales = slot();
      switch (random_() % 4) {
        case 0:
          file.tensor(full, Dtype::F32, {rows, 30});
          scope.add(name, values, {rows, 30});
          expect(full, values, static_cast<Bytes>(rows) * 120);
          break;
        case 1:
          file.tensor(full, Dtype::BF16, {rows, 30});
          scope.add_matrix(name, values, scales, {rows, 30});
          expect(full, values, static_cast<Bytes>(rows) * 60);
          break;
        case 2:
          file.tensor(full, Dtype::F8_E4M3, {rows, 33}).tensor(full + ".scale", Dtype::F32, {});
          scope.add_matrix(name, values, scales, {rows, 33});
          quantized_[full] = QuantFormat::fp8;
          expect(full, values, static_cast<Bytes>(rows) * 33);
          expect(full + ".scale", scales, 4);
          break;
        default:
          file.tensor(full, Dtype::U8, {rows * 32, 1}).tensor(full + ".scale", Dtype::F32, {rows});
          scope.add_matrix(name, values, scales, {rows, 64});
          quantized_[full] = QuantFormat::nf4;
          expect(full, values, static_cast<Bytes>(rows) * 32);
          expect(full + ".scale", scales, static_cast<Bytes>(rows) * 4);
      }
    }
  }

  // Each group takes seven rows of it.
  void add_shared(SyntheticFile& file) {
    const auto rows = static_cast<std::int64_t>(groups.size()) * 7;
    file.tensor("shared", Dtype::U8, {rows * 32, 1}).tensor("shared.scale", Dtype::F32, {rows});
    quantized_["shared"] = QuantFormat::nf4;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      at::Tensor& values = slot();
      at::Tensor& scales = slot();
      const RowRange range{static_cast<std::int64_t>(i) * 7, 7};
      ParameterScope(groups[i]).add_matrix("shared", values, scales, {rows, 64}, range);
      expected_[i].push_back({"shared", i * 7 * 32, 7 * 32, &values});
      expected_[i].push_back({"shared.scale", i * 7 * 4, 7 * 4, &scales});
    }
  }

  void quantize(const std::string& weight, QuantFormat format) {
    table.quantized[weight] = {format, table.tensors.at(weight + ".scale"), {}};
  }

  std::mt19937& random_;
  std::deque<at::Tensor> slots_;
  std::map<std::string, QuantFormat> quantized_;
  std::vector<std::vector<Expected>> expected_;
};

constexpr ReadOptions kSmallReads{.chunk = KiB(64), .pool = KiB(256)};

ReadOptions reading_with(ReadBackend backend, unsigned threads = 1) {
  ReadOptions options = kSmallReads;
  options.backend = backend;
  options.threads = threads;
  return options;
}

Bytes largest_of(const StagePlan& plan) {
  Bytes largest = 0;
  for (const StagePlan::Group& group : plan.groups) largest = std::max(largest, group.bytes);
  return largest;
}

TEST(StagedSource, gives_the_files_bytes_for_every_plan_backend_and_thread_count_pass_after_pass) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    Component component(random);
    const auto order = component.order();
    const StagePlan plan =
        plan_stage(component.table, order, {.resident_blocks = random() % 5, .slots = 1 + random() % 4});
    const ReadBackend backend = std::array{ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                                           ReadBackend::direct, ReadBackend::uring}[random() % 5];
    const auto source =
        make_staged_source(component.table, plan, {.read = reading_with(backend, random() % 3), .passes = 3});
    for (int pass = 0; pass < 3; ++pass) {
      for (std::size_t group = 0; group < order.size(); ++group) {
        const WeightLease lease = source->acquire(*order[group]);
        ASSERT_TRUE(component.holds(group));
      }
    }

    EXPECT_EQ(source->bytes_read(), plan.bytes_once() + 2 * plan.bytes_per_pass());
    EXPECT_NO_THROW(source->check());
  }
}

TEST(StagedSource, gives_the_files_bytes_in_any_order) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    Component component(random);
    const auto order = component.order();
    const auto source = make_staged_source(
        component.table,
        plan_stage(component.table, order, {.resident_blocks = random() % 3, .slots = 2 + random() % 2}),
        {.read = reading_with(ReadBackend::pread)});
    for (int i = 0; i < 30; ++i) {
      const std::size_t outer = random() % order.size(), inner = random() % order.size();
      const WeightLease held = source->acquire(*order[outer]);
      {
        const WeightLease lease = source->acquire(*order[inner]);
        ASSERT_TRUE(component.holds(inner));
      }
      if (inner != outer) {
        ASSERT_TRUE(component.holds(outer));
      }
    }
  }
}

class Staged : public ::testing::Test {
 protected:
  std::unique_ptr<WeightSource> stage(StageLimits limits, ReadBackend backend = ReadBackend::pread,
                                      std::size_t passes = 0) {
    plan_ = plan_stage(component_.table, order_, limits);
    return make_staged_source(component_.table, plan_,
                              {.read = reading_with(backend),
                               .loaded = [this](const LoadReport& report) { loaded_.push_back(report); },
                               .warn = [this](const std::string& line) { warnings_.push_back(line); },
                               .cancel = &cancel_,
                               .passes = passes});
  }

  void expect_passes(WeightSource& source, int passes) {
    for (int pass = 0; pass < passes; ++pass) {
      for (std::size_t group = 0; group < order_.size(); ++group) {
        const WeightLease lease = source.acquire(*order_[group]);
        ASSERT_TRUE(component_.holds(group));
      }
    }
  }

  std::mt19937 random_{20};
  Component component_{random_, 6};
  const std::vector<const ParameterGroup*> order_ = component_.order();
  StagePlan plan_;
  CancelToken cancel_;
  std::vector<LoadReport> loaded_;
  std::vector<std::string> warnings_;
};

TEST_F(Staged, reads_nothing_before_the_first_lease) {
  FaultySyscalls counting;
  const auto source = stage({.resident_blocks = 1});

  EXPECT_EQ(counting.read_calls(), 0);
  EXPECT_EQ(source->bytes_read(), 0u);
}

TEST_F(Staged, keeps_the_addresses_of_groups_that_stay) {
  const auto source = stage({});
  std::vector<const void*> places;
  for (int pass = 0; pass < 2; ++pass) {
    for (const ParameterGroup* group : order_) {
      const WeightLease lease = source->acquire(*group);
      const void* place = group->parameters.front().slot->data_ptr();
      if (pass == 0) places.push_back(place);
      if (pass == 1) {
        EXPECT_EQ(place, places[static_cast<std::size_t>(std::ranges::find(order_, group) - order_.begin())]);
      }
    }
  }
  EXPECT_EQ(source->bytes_read(), plan_.bytes_once());
}

TEST_F(Staged, clears_the_slots_when_a_lease_ends) {
  const auto source = stage({.resident_blocks = 0});
  { const WeightLease lease = source->acquire(*order_[0]); }

  for (const Parameter& parameter : order_[0]->parameters) {
    EXPECT_FALSE(parameter.slot->defined());
    EXPECT_FALSE(parameter.scales && parameter.scales->defined());
  }
}

TEST_F(Staged, tells_every_load_to_the_thread_that_leases) {
  const auto source = stage({.resident_blocks = 0, .slots = 2}, ReadBackend::pread, 2);
  expect_passes(*source, 2);

  const Bytes told = std::accumulate(loaded_.begin(), loaded_.end(), Bytes{0},
                                     [](Bytes sum, const LoadReport& report) { return sum + report.bytes; });
  EXPECT_EQ(told, source->bytes_read());
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(Staged, throws_the_error_of_a_read_ahead_once_naming_file_and_tensor_and_then_reads_again) {
  for (int slots : {1, 2, 3}) {
    const auto source = stage({.resident_blocks = 0, .slots = static_cast<std::size_t>(slots)});
    int errors = 0;
    {
      FaultySyscalls faults;
      faults.fail_nth_read(static_cast<int>(order_.size()), EIO);
      for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t group = 0; group < order_.size(); ++group) {
          try {
            const WeightLease lease = source->acquire(*order_[group]);
            ASSERT_TRUE(component_.holds(group));
          } catch (const Error& error) {
            ++errors;
            EXPECT_EQ(error.kind(), ErrorKind::io);
            EXPECT_THAT(error.what(), AllOf(HasSubstr("model.safetensors"), HasSubstr("tensor '"),
                                            HasSubstr("input/output error")));
          }
        }
      }
    }
    EXPECT_EQ(errors, 1);
    expect_passes(*source, 1);
  }
}

TEST_F(Staged, finds_a_file_that_was_cut_while_it_computed) {
  const auto source = stage({.resident_blocks = 0, .slots = 1});
  { const WeightLease lease = source->acquire(*order_[0]); }
  std::filesystem::resize_file(component_.path, std::filesystem::file_size(component_.path) / 2);

  EXPECT_THAT([&] { expect_passes(*source, 1); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("model.safetensors")));
  EXPECT_THAT([&] { source->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("model.safetensors")));
}

TEST_F(Staged, stops_in_the_middle_of_a_group_when_it_is_cancelled) {
  const auto source = stage({.resident_blocks = 0, .slots = 1});
  FaultySyscalls faults;
  faults.before_nth_read(2, [this] { cancel_.cancel(); });

  EXPECT_THAT([&] { expect_passes(*source, 2); },
              ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
}

TEST_F(Staged, goes_while_it_reads_ahead_and_leaves_no_thread_and_no_descriptor) {
  auto count = [](const char* folder) {
    return std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator());
  };
  { stage({.resident_blocks = 0})->acquire(*order_[0]); }  // what the process opens once
  const auto threads = count("/proc/self/task"), descriptors = count("/proc/self/fd");

  for (std::size_t group = 0; group < 6; ++group) {
    const auto source = stage({.resident_blocks = 2, .slots = 3}, ReadBackend::direct);
    const WeightLease lease = source->acquire(*order_[group]);
  }

  EXPECT_EQ(count("/proc/self/task"), threads);
  EXPECT_EQ(count("/proc/self/fd"), descriptors);
}

TEST_F(Staged, steps_down_with_a_warning_where_the_system_refuses_memory) {
  const auto source = stage({.resident_blocks = 2, .slots = 2}, ReadBackend::pread);
  {
    FaultySyscalls faults;
    static int refusals;
    refusals = 2;
    syscalls().mmap = [](void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
      if (refusals-- > 0) {
        errno = ENOMEM;
        return MAP_FAILED;
      }
      return ::mmap(at, size, protection, flags, file, offset);
    };
    const WeightLease lease = source->acquire(*order_[0]);
  }

  EXPECT_THAT(warnings_,
              ElementsAre(AllOf(HasSubstr("component: cannot take"),
                                HasSubstr("2 of 5 blocks stay in memory, slots for the others: 1")),
                          HasSubstr("1 of 5 blocks stay")));
  expect_passes(*source, 2);
}

TEST_F(Staged, refuses_where_not_even_one_slot_can_be_had) {
  const auto source = stage({.resident_blocks = 4, .slots = 2});
  FaultySyscalls faults;
  faults.fail_mmap(ENOMEM);

  EXPECT_THAT([&] { source->acquire(*order_[0]); },
              ThrowsError(ErrorKind::does_not_fit, HasSubstr("memory")));
}

TEST_F(Staged, reads_through_the_page_cache_with_a_warning_where_the_way_that_was_asked_for_is_refused) {
  for (ReadBackend backend : {ReadBackend::direct, ReadBackend::mmap}) {
    warnings_.clear();
    const auto source = stage({.resident_blocks = 2, .slots = 2}, backend);
    { const WeightLease lease = source->acquire(*order_[0]); }  // the memory of the stage
    FaultySyscalls faults;
    faults.refuse_direct_open(EINVAL).fail_mmap(ENODEV);
    expect_passes(*source, 2);

    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("through the page cache instead")));
  }
}

TEST_F(Staged, reads_where_huge_pages_and_threads_are_refused) {
  FaultySyscalls faults;
  faults.fail_madvise(EINVAL).refuse_threads_from(1);
  const auto source = stage({.resident_blocks = 2, .slots = 2}, ReadBackend::pread);

  expect_passes(*source, 2);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("refused a thread that reads weights ahead")));
}

TEST_F(Staged, needs_no_more_memory_than_its_plan_says) {
  for (std::size_t resident : {0, 2, 6}) {
    const auto source = stage({.resident_blocks = resident, .slots = 2});
    static std::size_t mapped;
    mapped = 0;
    FaultySyscalls faults;
    syscalls().mmap = [](void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
      mapped += size;
      return ::mmap(at, size, protection, flags, file, offset);
    };
    expect_passes(*source, 3);

    // Whole huge pages, and one to align them.
    EXPECT_LE(mapped, plan_.memory() + 2 * MiB(2) + kSmallReads.pool + 2 * MiB(2));
  }
}

TEST_F(Staged, refuses_a_group_that_is_not_in_its_plan) {
  const auto source = stage({});
  const ParameterGroup other{"other", {}};

  EXPECT_THAT([&] { source->acquire(other); }, ThrowsError(ErrorKind::internal, HasSubstr("'other'")));
}

TEST(PlanStage, keeps_small_groups_and_as_many_large_ones_as_were_asked_for_at_equal_distances) {
  SyntheticFile file;
  file.tensor("small.weight", Dtype::BF16, {10});
  std::deque<ParameterGroup> groups;
  std::vector<const ParameterGroup*> order;
  at::Tensor slot;
  auto add = [&](const std::string& name, std::int64_t size) {
    groups.push_back({name, {}});
    ParameterScope(groups.back(), name).add("weight", slot, {size});
    order.push_back(&groups.back());
  };
  add("small", 10);
  for (int i = 0; i < 8; ++i) {
    const std::int64_t size = i == 3 ? 6000 : 5000;
    file.tensor(fmt::format("{}.weight", i), Dtype::BF16, {size});
    add(std::to_string(i), size);
  }
  const auto written = file.write();
  const ComponentTable table = whole_checkpoint("component", Checkpoint::open(written.path()));

  const StagePlan plan = plan_stage(table, order, {.budget = 0, .resident_blocks = 2, .slots = 3});

  std::vector<bool> resident;
  for (const StagePlan::Group& group : plan.groups) resident.push_back(group.resident);
  EXPECT_THAT(resident, ElementsAre(true, false, false, false, true, false, false, false, true));
  EXPECT_EQ(plan.large_groups(), 8u);
  EXPECT_EQ(plan.large_resident(), 2u);
  EXPECT_EQ(plan.slots, 3u);
  EXPECT_EQ(plan.bytes_once(), 20u + 12000 + 7 * 10000);
  EXPECT_EQ(plan.bytes_per_pass(), 6 * 10000u);
  EXPECT_GE(plan.slot_bytes, 10000u);
  EXPECT_EQ(plan.slot_bytes % 4096, 0u);
  EXPECT_EQ(plan.memory(), plan.resident_bytes + 3 * plan.slot_bytes);

  // Whatever is asked for, more than all do not stay.
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 100}).large_resident(), 8u);
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 100}).slots, 0u);
  // Where each has a slot, nothing is read twice.
  EXPECT_EQ(plan_stage(table, order, {.resident_blocks = 7}).bytes_per_pass(), 0u);
}

TEST(PlanStage, keeps_what_the_budget_holds_and_is_the_smallest_where_it_holds_nothing) {
  std::mt19937 random(5);
  Component component(random, 7);
  const auto order = component.order();
  const StagePlan whole = plan_stage(component.table, order);
  EXPECT_EQ(whole.slots, 0u);
  EXPECT_EQ(whole.bytes_per_pass(), 0u);
  std::size_t kept = whole.large_groups();
  for (Bytes budget = whole.memory() + 1; budget > 0; budget = budget * 9 / 10) {
    const StagePlan plan = plan_stage(component.table, order, {.budget = budget});
    EXPECT_LE(plan.large_resident(), kept);
    kept = plan.large_resident();
    if (plan.memory() > budget) {
      EXPECT_EQ(plan.slots, 1u);
      EXPECT_EQ(kept, 0u);
    }
  }
  EXPECT_EQ(kept, 0u);
  EXPECT_EQ(plan_stage(component.table, order, {.budget = 0}).slots, 1u);
  EXPECT_GE(plan_stage(component.table, order, {.budget = 0}).slot_bytes, largest_of(whole));
}

}  // namespace
}  // namespace sluice::weights
