#include "weights/stage.h"

#include "bytes/read/page_cache.h"
#include "support/faulty_syscalls.h"
#include "support/page_cache.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <deque>

namespace sluice::weights {
namespace {

using test::SyntheticFile;
using test::TemporaryFolder;

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

// Eight blocks of half a MiB and a small one.
class Windowed : public ::testing::Test {
 protected:
  Windowed() {
    SyntheticFile file;
    for (int i = 0; i < 9; ++i) {
      const std::int64_t size = i == 3 ? 1000 : 131072;
      file.tensor(fmt::format("{}.weight", i), Dtype::F32, {size})
          .tensor(fmt::format("{}.odd", i), Dtype::U8, {3});
      groups_.push_back({std::to_string(i), {}});
      ParameterScope(groups_.back(), std::to_string(i)).add("weight", slots_.emplace_back(), {size});
      order_.push_back(&groups_.back());
    }
    file.write_to(path_);
    table_ = whole_checkpoint("component", Checkpoint::open(path_));
    values_ = read_tensors(path_);
  }

  std::unique_ptr<WeightSource> source(CachePolicy cache = CachePolicy::automatic, std::size_t passes = 0) {
    return make_windowed_source(table_, std::make_shared<bytes::MappedCheckpoint>(table_.checkpoint, cache),
                                order_, {.cancel = &cancel_, .passes = passes});
  }

  void use(WeightSource& source, std::size_t group) {
    const WeightLease lease = source.acquire(*order_[group]);
    EXPECT_EQ(bytes_of(slots_[group]), bytes_of(values_.at(fmt::format("{}.weight", group))));
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  ComponentTable table_;
  TensorMap values_;
  std::deque<at::Tensor> slots_;
  std::deque<ParameterGroup> groups_;
  std::vector<const ParameterGroup*> order_;
  CancelToken cancel_;
};

TEST_F(Windowed, gives_the_files_bytes_pass_after_pass_and_in_any_order) {
  const auto windowed = source(CachePolicy::automatic, 3);
  for (std::size_t i = 0; i < 27; ++i) use(*windowed, i % 9);
  EXPECT_NO_THROW(windowed->check());
  const StagePlan plan = plan_window(table_, order_);
  EXPECT_EQ(windowed->bytes_read(), plan.bytes_once() + 2 * plan.bytes_per_pass());

  const auto other = source();
  for (std::size_t i : {4, 4, 0, 8, 3, 1, 7, 2}) use(*other, i);
}

TEST_F(Windowed, leaves_no_more_in_the_page_cache_than_its_plan_says) {
  const auto windowed = source();
  const StagePlan plan = plan_window(table_, order_);
  ASSERT_LT(plan.memory(), MiB(2));
  test::drop_from_page_cache(path_);
  for (std::size_t i = 0; i < 18; ++i) {
    use(*windowed, i % 9);
    // And what the system reads ahead of single pages.
    EXPECT_LE(bytes::cached_bytes(path_), plan.memory() + MiB(1));
  }
}

TEST_F(Windowed, keeps_files_that_are_to_be_kept) {
  {
    const auto windowed = source(CachePolicy::keep);
    for (std::size_t i = 0; i < 9; ++i) use(*windowed, i);
  }

  EXPECT_GT(bytes::cached_bytes(path_), MiB(3));
}

TEST_F(Windowed, looks_at_pages_that_the_system_does_not_bring_in_ahead) {
  test::FaultySyscalls faults;
  faults.fail_madvise(EINVAL).refuse_threads_from(1);
  const auto windowed = source();

  for (std::size_t i = 0; i < 18; ++i) use(*windowed, i % 9);
}

TEST_F(Windowed, stops_when_it_is_cancelled) {
  const auto windowed = source();
  use(*windowed, 0);
  cancel_.cancel();

  EXPECT_THAT(
      [&] {
        for (std::size_t i = 0; i < 9; ++i) use(*windowed, i);
      },
      test::ThrowsError(ErrorKind::interrupted, ::testing::HasSubstr("interrupted")));
}

}  // namespace
}  // namespace sluice::weights
