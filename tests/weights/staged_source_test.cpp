#include "weights/stage.h"

#include "support/faulty_syscalls.h"
#include "support/throws_error.h"
#include "weights/random_component.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr ReadOptions kSmallReads{.chunk = KiB(64), .pool = KiB(256)};

ReadOptions reading_with(ReadBackend backend, unsigned threads = 1) {
  ReadOptions options = kSmallReads;
  options.backend = backend;
  options.threads = threads;
  return options;
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

}  // namespace
}  // namespace sluice::weights
