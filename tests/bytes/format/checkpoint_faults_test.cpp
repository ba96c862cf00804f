// A system that fails while a checkpoint is opened and its tensors are read: what is said, and that the next
// try works.
#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/checkpoint.h>

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace sluice {
namespace {

using test::FaultySyscalls;
using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;

int reads_of(const std::function<void()>& work) {
  FaultySyscalls counting;
  work();
  return counting.read_calls();
}

std::string bytes_of(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo& tensor = *checkpoint.find(name);
  std::string bytes(tensor.size, '?');
  checkpoint.read(tensor, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Opening reads the first bytes and then the header: one call each, where the system gives all that is asked
// for.
constexpr int kReadsOfOpen = 2;

class FaultsOfOpening : public ::testing::Test {
 protected:
  const SyntheticFile file_ =
      SyntheticFile().tensor("a", Dtype::F32, {300}).metadata("key", std::string(999, 'x'));
  const test::WrittenFile written_ = file_.write();
};

TEST_F(FaultsOfOpening, name_the_file_and_what_was_read_of_it_and_the_next_try_works) {
  const char* what[kReadsOfOpen] = {"the first bytes at byte 0", "the header at byte 0"};
  for (int read = 1; read <= kReadsOfOpen; ++read) {
    FaultySyscalls faults;
    faults.fail_nth_read(read, EIO);

    EXPECT_THAT([&] { Checkpoint::open(written_.path()); },
                ThrowsError(ErrorKind::io,
                            AllOf(HasSubstr(written_.path().string() + ": cannot read " + what[read - 1]),
                                  HasSubstr("input/output error")),
                            HasSubstr("disk or network mount")));
    EXPECT_EQ(bytes_of(Checkpoint::open(written_.path()), "a"), file_.data());
  }
}

TEST_F(FaultsOfOpening, that_are_short_reads_and_signals_are_none) {
  FaultySyscalls faults;
  faults.move_at_most(7).interrupt_often();

  EXPECT_EQ(bytes_of(Checkpoint::open(written_.path()), "a"), file_.data());
}

TEST_F(FaultsOfOpening, tell_of_a_file_that_is_cut_short_meanwhile) {
  FaultySyscalls faults;
  faults.before_nth_read(2, [&] { std::filesystem::resize_file(written_.path(), 600); });

  EXPECT_THAT([&] { Checkpoint::open(written_.path()); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr(written_.path().string()),
                                HasSubstr("the file ends at byte 600 while reading the header")),
                          HasSubstr("keep it unchanged")));
}

TEST_F(FaultsOfOpening, that_refuse_the_file_come_with_the_reason_and_a_remedy) {
  const std::pair<int, const char*> refusals[] = {
      {EMFILE, "ulimit -n"}, {EACCES, "permissions"}, {ENOMEM, "ulimit -v"}};
  for (auto [error, remedy] : refusals) {
    FaultySyscalls faults;
    faults.refuse_open(error);

    EXPECT_THAT([&] { Checkpoint::open(written_.path()); },
                ThrowsError(ErrorKind::io, HasSubstr(written_.path().string() + ": cannot open: "),
                            HasSubstr(remedy)));
  }
}

TEST(FaultsOfSets, name_the_shard_that_could_not_be_read) {
  TemporaryFolder folder;
  for (const char* name : {"1", "2", "3"})
    SyntheticFile().tensor(name, Dtype::U8, {9}).write_to(folder / name);
  write_file(folder / "m.safetensors.index.json", index_text({{"1", "1"}, {"2", "2"}, {"3", "3"}}));
  const int all = reads_of([&] { Checkpoint::open(folder.path()); });
  std::set<std::string> named;
  for (int read = 1; read <= all; ++read) {
    FaultySyscalls faults;
    faults.fail_nth_read(read, EIO);
    try {
      Checkpoint::open(folder.path());
      ADD_FAILURE() << "read " << read << " failed and nobody noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
      named.insert(std::string(error.what()).substr(0, std::string(error.what()).find(": ")));
    }
  }

  EXPECT_THAT(
      named, ::testing::ElementsAre((folder / "1").string(), (folder / "2").string(), (folder / "3").string(),
                                    (folder / "m.safetensors.index.json").string()));
}

// Large enough for several threads; a small tensor in front of it.
class FaultsOfReading : public ::testing::Test {
 protected:
  static constexpr Bytes kSize = MiB(40) + 13;

  const SyntheticFile file_ =
      SyntheticFile().tensor("small", Dtype::U8, {77}).tensor("large", Dtype::U8, {kSize});
  const test::WrittenFile written_ = file_.write();
  const Checkpoint checkpoint_ = Checkpoint::open(written_.path());

  bool reads_all() const {
    return bytes_of(checkpoint_, "small") + bytes_of(checkpoint_, "large") == file_.data();
  }
};

TEST_F(FaultsOfReading, name_file_tensor_and_place_and_the_next_try_works) {
  const int all = reads_of([&] { bytes_of(checkpoint_, "large"); });
  for (int read = 1; read <= all; ++read) {
    FaultySyscalls faults;
    faults.fail_nth_read(read, EIO);

    EXPECT_THAT([&] { bytes_of(checkpoint_, "large"); },
                ThrowsError(ErrorKind::io, AllOf(HasSubstr(written_.path().string() +
                                                           ": cannot read tensor 'large' at byte "),
                                                 HasSubstr("input/output error"))));
    EXPECT_TRUE(reads_all());
  }
}

TEST_F(FaultsOfReading, that_are_short_reads_and_signals_are_none) {
  FaultySyscalls faults;
  faults.move_at_most(100'001).interrupt_often();

  EXPECT_TRUE(reads_all());
  EXPECT_GT(faults.read_calls(), 2 * static_cast<int>(kSize / 100'001));
}

TEST_F(FaultsOfReading, tell_where_a_file_ends_that_is_cut_short_meanwhile_and_end_with_the_file_s_return) {
  FaultySyscalls faults;
  faults.move_at_most(MiB(1)).before_nth_read(5,
                                              [&] { std::filesystem::resize_file(written_.path(), MiB(9)); });

  EXPECT_THAT([&] { bytes_of(checkpoint_, "large"); },
              ThrowsError(ErrorKind::corrupt_file,
                          AllOf(HasSubstr(written_.path().string() + ": the file ends at byte "),
                                HasSubstr("while reading tensor 'large'"), HasSubstr("are missing"))));
  EXPECT_EQ(bytes_of(checkpoint_, "small"), file_.data().substr(0, 77));

  file_.write_to(written_.path());
  EXPECT_TRUE(reads_all());
}

TEST_F(FaultsOfReading, that_refuse_threads_leave_the_work_to_the_caller) {
  for (int first_refused : {1, 2}) {
    FaultySyscalls faults;
    faults.refuse_threads_from(first_refused);

    EXPECT_TRUE(reads_all());
  }
}

TEST_F(FaultsOfReading, of_a_disk_show_in_a_storm_of_signals) {
  FaultySyscalls faults;
  faults.refuse_threads_from(2).move_at_most(MiB(1)).interrupt_often().fail_nth_read(10, ENXIO);

  EXPECT_THAT([&] { bytes_of(checkpoint_, "large"); },
              ThrowsError(ErrorKind::io, HasSubstr("no such device or address")));
}

}  // namespace
}  // namespace sluice
