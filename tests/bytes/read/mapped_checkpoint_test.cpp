#include "bytes/read/mapped_checkpoint.h"

#include "bytes/read/page_cache.h"
#include "support/faulty_syscalls.h"
#include "support/page_cache.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

using test::drop_from_page_cache;
using test::FaultySyscalls;
using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(MappedCheckpoint, shows_tensors_where_they_lie) {
  const SyntheticFile file =
      SyntheticFile().tensor("a", Dtype::U8, {3}).tensor("b", Dtype::F32, {2}).tensor("e", Dtype::F32, {0});
  const Checkpoint checkpoint = Checkpoint::open(file.write().path());
  const MappedCheckpoint mapped(checkpoint);

  EXPECT_EQ(as_text(mapped.view(*checkpoint.find("b"))), file.data().substr(3, 8));
  EXPECT_THAT(mapped.view(*checkpoint.find("e")), IsEmpty());
}

TEST(MappedCheckpoint, shows_every_tensor_of_random_files) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 30; ++round) {
    SyntheticFile file;
    std::vector<Bytes> begins;
    for (unsigned i = 0; i < 1 + random() % 5; ++i) {
      begins.push_back(file.data().size());
      file.tensor(fmt::format("t{}", i), Dtype::U8, {static_cast<std::int64_t>(random() % 20'000)});
    }
    file.pad_header(random() % 9);  // data begins at any alignment
    const Checkpoint checkpoint = Checkpoint::open(file.write().path());
    const MappedCheckpoint mapped(checkpoint);

    for (std::size_t i = 0; i < begins.size(); ++i) {
      const TensorInfo& tensor = *checkpoint.find(fmt::format("t{}", i));
      ASSERT_EQ(as_text(mapped.view(tensor)), file.data().substr(begins[i], tensor.size));
    }
    EXPECT_NO_THROW(mapped.check());
  }
}

TEST(MappedCheckpoint, serves_sets_of_shards) {
  TemporaryFolder folder;
  const SyntheticFile one = SyntheticFile().tensor("a", Dtype::U8, {10}).tensor("b", Dtype::U8, {20});
  const SyntheticFile two = SyntheticFile().tensor("c", Dtype::U8, {30});
  one.write_to(folder / "1");
  two.write_to(folder / "2");
  write_file(folder / "m.safetensors.index.json", index_text({{"a", "1"}, {"b", "1"}, {"c", "2"}}));
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  const MappedCheckpoint mapped(checkpoint);

  EXPECT_EQ(as_text(mapped.view(*checkpoint.find("b"))), one.data().substr(10));
  EXPECT_EQ(as_text(mapped.view(*checkpoint.find("c"))), two.data());
}

TEST(MappedCheckpoint, counts_the_bytes_of_a_view_once_from_any_number_of_threads) {
  const Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::F32, {5}).write().path());
  const MappedCheckpoint mapped(checkpoint);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([&] { mapped.view(*checkpoint.find("a")); });
  }

  EXPECT_EQ(mapped.bytes_viewed(), 20u);
}

TEST(MappedCheckpoint, refuses_ranges_outside_the_tensor_as_a_bug) {
  const Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::U8, {10}).write().path());
  const MappedCheckpoint mapped(checkpoint);
  TensorInfo beyond = *checkpoint.find("a");
  beyond.offset += 1;

  EXPECT_THAT([&] { mapped.view(beyond); }, ThrowsError(ErrorKind::internal, HasSubstr("'a'")));
}

TEST(MappedCheckpoint, that_the_system_refuses_is_an_io_error_with_another_backend_as_remedy) {
  const Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::F32, {5}).write().path());
  FaultySyscalls faults;
  faults.fail_mmap(ENOMEM);

  EXPECT_THAT([&] { MappedCheckpoint mapped(checkpoint); },
              ThrowsError(ErrorKind::io, HasSubstr("model.safetensors: cannot map"),
                          HasSubstr("--read-backend pread")));
}

class ChangingFile : public ::testing::Test {
 protected:
  ChangingFile() {
    SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(path_);
    checkpoint_ = Checkpoint::open(path_);
    mapped_.emplace(checkpoint_);
  }
  std::span<const std::byte> view() const { return mapped_->view(*checkpoint_.find("a")); }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  Checkpoint checkpoint_;
  std::optional<MappedCheckpoint> mapped_;
};

TEST_F(ChangingFile, that_shrinks_gives_zeros_and_fails_the_check) {
  const auto bytes = view();

  std::filesystem::resize_file(path_, 5'000);

  EXPECT_TRUE(std::ranges::all_of(bytes.last(90'000), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_THAT([&] { mapped_->check(); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr("model.safetensors: the file shrank while it was mapped"),
                                HasSubstr("5000"))));
}

TEST_F(ChangingFile, that_grows_back_still_fails_the_check_once_zeros_were_seen) {
  std::filesystem::resize_file(path_, 0);
  ASSERT_EQ(view().back(), std::byte{0});

  SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(path_);

  EXPECT_THAT([&] { mapped_->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("shrank")));
}

TEST_F(ChangingFile, that_is_written_to_fails_the_check) {
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(50'000).put('!');
  // The clock of file times may tick slower than the test runs.
  std::filesystem::last_write_time(path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));

  EXPECT_THAT([&] { mapped_->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("was written to")));
}

TEST_F(ChangingFile, that_is_replaced_fails_the_check) {
  SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(folder_ / "new");
  std::filesystem::rename(folder_ / "new", path_);

  EXPECT_THAT([&] { mapped_->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("was replaced")));
}

TEST_F(ChangingFile, whose_name_is_removed_stays_readable) {
  std::filesystem::remove(path_);

  EXPECT_NO_THROW(mapped_->check());
  EXPECT_EQ(as_text(view()), SyntheticFile().tensor("a", Dtype::U8, {100'000}).data());
}

// 16 MiB of which nothing is in the page cache but what opening it reads.
class ColdFile : public ::testing::Test {
 protected:
  ColdFile() {
    SyntheticFile().tensor("a", Dtype::U8, {kSize}).write_to(path_);
    drop_from_page_cache(path_);
    checkpoint_ = Checkpoint::open(path_);
  }

  // Of the tensor's bytes, all of which are looked at even where nobody wants to know.
  unsigned sum(const MappedCheckpoint& mapped) const {
    volatile unsigned sum = 0;
    for (std::byte byte : mapped.view(*checkpoint_.find("a"))) sum = sum + static_cast<unsigned>(byte);
    return sum;
  }
  double cached_share() const { return static_cast<double>(cached_bytes(path_)) / kSize; }

  static constexpr std::int64_t kSize = MiB(16);
  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  Checkpoint checkpoint_;
};

TEST_F(ColdFile, leaves_the_page_cache_when_it_is_let_go_and_can_be_used_again) {
  MappedCheckpoint mapped(checkpoint_, CachePolicy::drop);
  const double before = cached_share();

  const unsigned first = sum(mapped);
  EXPECT_GT(cached_share(), 0.99);
  mapped.let_go();
  EXPECT_LE(cached_share(), before + 0.01);
  EXPECT_EQ(sum(mapped), first);
  mapped.let_go();

  EXPECT_LE(cached_share(), before + 0.01);
}

TEST_F(ColdFile, leaves_the_page_cache_with_the_mapping_that_drops) {
  const double before = cached_share();
  {
    MappedCheckpoint mapped(checkpoint_, CachePolicy::drop);
    sum(mapped);
  }

  EXPECT_LE(cached_share(), before + 0.01);
}

TEST_F(ColdFile, keeps_what_was_in_the_page_cache_before) {
  sum(MappedCheckpoint(checkpoint_));
  ASSERT_GT(cached_share(), 0.99);
  {
    MappedCheckpoint mapped(checkpoint_, CachePolicy::drop);
    sum(mapped);
    mapped.let_go();
  }

  EXPECT_GT(cached_share(), 0.99);
}

TEST_F(ColdFile, stays_in_the_page_cache_unless_it_is_to_be_dropped) {
  for (CachePolicy policy : {CachePolicy::automatic, CachePolicy::keep, CachePolicy::prefetch}) {
    drop_from_page_cache(path_);
    MappedCheckpoint mapped(checkpoint_, policy);

    sum(mapped);
    mapped.let_go();

    EXPECT_GT(cached_share(), 0.99) << to_string(policy);
  }
}

TEST_F(ColdFile, comes_into_memory_run_by_run_and_leaves_it_so_too) {
  const MappedCheckpoint mapped(checkpoint_);
  TensorInfo run = checkpoint_.tensors().front();
  run.offset += run.size / 4;
  run.size /= 2;
  run.shape = {static_cast<std::int64_t>(run.size)};

  const Bytes before = cached_bytes(path_);

  mapped.bring(run);
  EXPECT_GE(cached_bytes(path_), run.size);
  EXPECT_LT(cached_bytes(path_), before + run.size + MiB(1));

  mapped.drop(run);
  EXPECT_LE(cached_bytes(path_), before + MiB(1));
  EXPECT_EQ(mapped.view(run).size(), run.size);
}

TEST_F(ColdFile, is_not_dropped_where_it_is_to_be_kept) {
  const MappedCheckpoint mapped(checkpoint_, CachePolicy::keep);
  const TensorInfo& tensor = checkpoint_.tensors().front();

  mapped.bring(tensor);
  mapped.drop(tensor);

  EXPECT_GE(cached_bytes(path_), tensor.size);
}

TEST_F(ColdFile, stops_coming_into_memory_when_it_is_cancelled) {
  const MappedCheckpoint mapped(checkpoint_);
  CancelToken cancel;
  cancel.cancel();

  EXPECT_THAT([&] { mapped.bring(checkpoint_.tensors().front(), &cancel); },
              ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
}

TEST_F(ColdFile, is_read_ahead_only_with_prefetch) {
  static int advice;
  FaultySyscalls faults;  // puts the table back
  syscalls().madvise = [](void*, std::size_t, int what) {
    advice = what;
    return 0;
  };
  auto advice_of = [&](CachePolicy policy) {
    advice = -1;
    MappedCheckpoint(checkpoint_, policy).prefetch(*checkpoint_.find("a"));
    return advice;
  };

  EXPECT_EQ(advice_of(CachePolicy::prefetch), MADV_WILLNEED);
  EXPECT_EQ(advice_of(CachePolicy::automatic), -1);
  EXPECT_EQ(advice_of(CachePolicy::keep), -1);
}

}  // namespace
}  // namespace sluice::bytes
