#include "bytes/read_backend.h"

#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace sluice::bytes {
namespace {

using test::FaultySyscalls;
using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr BackendKind kBackends[] = {BackendKind::mmap, BackendKind::pread};

std::string read_range(const ReadBackend& backend, const TensorInfo& tensor, Bytes skip, Bytes size) {
  std::string bytes(size, '?');
  backend.read(tensor, skip, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Backend, has_a_name_that_is_read_back) {
  for (BackendKind kind : kBackends) EXPECT_EQ(parse_backend(to_string(kind)), kind);
  EXPECT_THAT([] { parse_backend("uring"); },
              ThrowsError(ErrorKind::usage, HasSubstr("'uring'"), HasSubstr("mmap or pread")));
}

TEST(Backends, deliver_the_same_bytes_of_any_range_of_random_files) {
  unsigned seed = std::random_device()();
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
    Checkpoint checkpoint = Checkpoint::open(file.write().path());

    for (BackendKind kind : kBackends) {
      auto backend = make_backend(kind, checkpoint);
      for (std::size_t i = 0; i < begins.size(); ++i) {
        const TensorInfo& tensor = *checkpoint.find(fmt::format("t{}", i));
        Bytes skip = random() % (tensor.size + 1);
        Bytes size = random() % (tensor.size - skip + 1);
        ASSERT_EQ(read_range(*backend, tensor, skip, size), file.data().substr(begins[i] + skip, size))
            << to_string(kind);
        ASSERT_EQ(read_range(*backend, tensor, 0, tensor.size), file.data().substr(begins[i], tensor.size));
      }
      EXPECT_NO_THROW(backend->check());
    }
  }
}

TEST(Backends, deliver_a_tensor_that_several_threads_read) {
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {MiB(40) + 13}).pad_header(1);
  Checkpoint checkpoint = Checkpoint::open(file.write().path());
  const TensorInfo& tensor = *checkpoint.find("a");

  for (BackendKind kind : kBackends) {
    EXPECT_TRUE(read_range(*make_backend(kind, checkpoint), tensor, 5, tensor.size - 5) ==
                file.data().substr(5));
  }
}

TEST(Backends, serve_many_threads_at_once) {
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {100'000});
  Checkpoint checkpoint = Checkpoint::open(file.write().path());

  for (BackendKind kind : kBackends) {
    auto backend = make_backend(kind, checkpoint);
    std::vector<std::string> got(8);
    {
      std::vector<std::jthread> threads;
      for (auto& bytes : got) {
        threads.emplace_back([&] { bytes = read_range(*backend, *checkpoint.find("a"), 0, 100'000); });
      }
    }
    for (const std::string& bytes : got) EXPECT_TRUE(bytes == file.data());
    EXPECT_EQ(backend->bytes_read(), 800'000u);
  }
}

TEST(Backends, refuse_ranges_outside_the_tensor_as_a_bug) {
  Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::U8, {10}).write().path());
  TensorInfo beyond = *checkpoint.find("a");
  beyond.offset += 1;

  for (BackendKind kind : kBackends) {
    auto backend = make_backend(kind, checkpoint);
    const TensorInfo& tensor = *checkpoint.find("a");
    EXPECT_THAT([&] { read_range(*backend, tensor, 5, 6); },
                ThrowsError(ErrorKind::internal, HasSubstr("'a'")));
    EXPECT_THAT([&] { read_range(*backend, tensor, 11, 0); },
                ThrowsError(ErrorKind::internal, HasSubstr("'a'")));
    EXPECT_THAT([&] { read_range(*backend, beyond, 0, 10); },
                ThrowsError(ErrorKind::internal, HasSubstr("'a'")));
  }
}

TEST(MmapBackend, shows_tensors_where_they_lie) {
  SyntheticFile file =
      SyntheticFile().tensor("a", Dtype::U8, {3}).tensor("b", Dtype::F32, {2}).tensor("e", Dtype::F32, {0});
  Checkpoint checkpoint = Checkpoint::open(file.write().path());
  auto backend = make_backend(BackendKind::mmap, checkpoint);

  EXPECT_EQ(as_text(backend->view(*checkpoint.find("b"))), file.data().substr(3, 8));
  EXPECT_THAT(backend->view(*checkpoint.find("e")), IsEmpty());
}

TEST(MmapBackend, counts_the_bytes_of_a_view_once) {
  Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::F32, {5}).write().path());
  auto backend = make_backend(BackendKind::mmap, checkpoint);

  for (int i = 0; i < 3; ++i) backend->view(*checkpoint.find("a"));

  EXPECT_EQ(backend->bytes_read(), 20u);
}

TEST(MmapBackend, that_the_system_refuses_is_an_io_error_with_the_other_backend_as_remedy) {
  Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::F32, {5}).write().path());
  FaultySyscalls faults;
  faults.fail_mmap(ENOMEM);

  EXPECT_THAT([&] { make_backend(BackendKind::mmap, checkpoint); },
              ThrowsError(ErrorKind::io, HasSubstr("model.safetensors: cannot map"),
                          HasSubstr("--read-backend pread")));
}

TEST(PreadBackend, has_no_views) {
  Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::F32, {5}).write().path());

  EXPECT_THAT(make_backend(BackendKind::pread, checkpoint)->view(*checkpoint.find("a")), IsEmpty());
}

TEST(PreadBackend, names_file_tensor_and_place_of_a_failing_read) {
  Checkpoint checkpoint = Checkpoint::open(SyntheticFile().tensor("a", Dtype::U8, {MiB(40)}).write().path());
  auto backend = make_backend(BackendKind::pread, checkpoint);
  FaultySyscalls faults;
  faults.fail_nth_read(1, EIO);

  EXPECT_THAT([&] { read_range(*backend, *checkpoint.find("a"), 0, MiB(40)); },
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("model.safetensors: cannot read tensor 'a' at byte"),
                                               HasSubstr("input/output error"))));
}

class ChangingFile : public ::testing::TestWithParam<BackendKind> {
 protected:
  ChangingFile() {
    SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(path_);
    checkpoint_ = Checkpoint::open(path_);
    backend_ = make_backend(GetParam(), checkpoint_);
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "model.safetensors";
  Checkpoint checkpoint_;
  std::unique_ptr<ReadBackend> backend_;
};

TEST_P(ChangingFile, that_shrinks_is_an_error_of_the_read_and_of_the_check) {
  std::filesystem::resize_file(path_, 5'000);

  EXPECT_THAT(
      [&] { read_range(*backend_, *checkpoint_.find("a"), 0, 100'000); },
      ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr("model.safetensors"), HasSubstr("tensor 'a'"))));
  EXPECT_THAT([&] { backend_->check(); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr("model.safetensors: the file shrank"), HasSubstr("5000"))));
}

TEST_P(ChangingFile, that_is_written_to_fails_the_check) {
  std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary).seekp(50'000).put('!');
  // The clock of file times may tick slower than the test runs.
  std::filesystem::last_write_time(path_, std::filesystem::last_write_time(path_) + std::chrono::seconds(1));

  EXPECT_THAT([&] { backend_->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("was written to")));
}

TEST_P(ChangingFile, that_is_replaced_fails_the_check) {
  SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(folder_ / "new");
  std::filesystem::rename(folder_ / "new", path_);

  EXPECT_THAT([&] { backend_->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("was replaced")));
}

TEST_P(ChangingFile, whose_name_is_removed_stays_readable) {
  std::filesystem::remove(path_);

  EXPECT_NO_THROW(backend_->check());
  EXPECT_EQ(read_range(*backend_, *checkpoint_.find("a"), 0, 100'000),
            SyntheticFile().tensor("a", Dtype::U8, {100'000}).data());
}

INSTANTIATE_TEST_SUITE_P(Backends, ChangingFile, ::testing::ValuesIn(kBackends),
                         [](const auto& param) { return std::string(to_string(param.param)); });

TEST(MmapBackend, whose_file_shrinks_under_a_view_gives_zeros_and_fails_the_check) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {100'000}).write_to(folder / "f");
  Checkpoint checkpoint = Checkpoint::open(folder / "f");
  auto backend = make_backend(BackendKind::mmap, checkpoint);
  auto view = backend->view(*checkpoint.find("a"));

  std::filesystem::resize_file(folder / "f", 0);

  EXPECT_TRUE(std::ranges::all_of(view.last(90'000), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_THAT([&] { backend->check(); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("shrank while it was mapped")));
}

TEST(MmapBackend, whose_file_grows_back_still_fails_the_check_once_zeros_were_seen) {
  TemporaryFolder folder;
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {100'000});
  file.write_to(folder / "f");
  Checkpoint checkpoint = Checkpoint::open(folder / "f");
  auto backend = make_backend(BackendKind::mmap, checkpoint);
  std::filesystem::resize_file(folder / "f", 0);
  ASSERT_EQ(backend->view(*checkpoint.find("a")).back(), std::byte{0});

  file.write_to(folder / "f");

  EXPECT_THAT([&] { backend->check(); }, ThrowsError(ErrorKind::corrupt_file, HasSubstr("shrank")));
}

TEST(Backends, serve_sets_of_shards) {
  TemporaryFolder folder;
  SyntheticFile one = SyntheticFile().tensor("a", Dtype::U8, {10}).tensor("b", Dtype::U8, {20});
  SyntheticFile two = SyntheticFile().tensor("c", Dtype::U8, {30});
  one.write_to(folder / "1");
  two.write_to(folder / "2");
  write_file(folder / "m.safetensors.index.json", index_text({{"a", "1"}, {"b", "1"}, {"c", "2"}}));
  Checkpoint checkpoint = Checkpoint::open(folder.path());

  for (BackendKind kind : kBackends) {
    auto backend = make_backend(kind, checkpoint);
    EXPECT_EQ(read_range(*backend, *checkpoint.find("b"), 0, 20), one.data().substr(10));
    EXPECT_EQ(read_range(*backend, *checkpoint.find("c"), 0, 30), two.data());
  }
}

}  // namespace
}  // namespace sluice::bytes
