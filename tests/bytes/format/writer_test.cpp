#include "bytes/format/writer.h"

#include "support/faulty_syscalls.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <csignal>
#include <string>
#include <vector>

namespace sluice::bytes {
namespace {

using test::FaultySyscalls;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string bytes_of(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo& tensor = *checkpoint.find(name);
  std::string bytes(tensor.size, '\0');
  checkpoint.read(tensor, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// Files of this process may have this many bytes while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

TEST(SafetensorsWriter, writes_what_a_checkpoint_reads_back) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "out.safetensors",
                           {{"z", Dtype::BF16, {2, 2}},
                            {"scalar", Dtype::F32, {}},
                            {"empty", Dtype::F32, {3, 0}},
                            {"名前 \"q\"\n", Dtype::U8, {3}},
                            {"narrow", Dtype::F4, {4}}},
                           {{"config", "{\"a\": \"é\"}"}, {"", ""}});
  writer.append(as_bytes("zzzzzzzzssss"));
  writer.append(as_bytes("nam"));
  writer.append(as_bytes("4f"));
  writer.finish();
  Checkpoint checkpoint = Checkpoint::open(folder / "out.safetensors");

  EXPECT_EQ(checkpoint.tensors().size(), 5u);
  EXPECT_EQ(bytes_of(checkpoint, "z"), "zzzzzzzz");
  EXPECT_EQ(bytes_of(checkpoint, "scalar"), "ssss");
  EXPECT_EQ(bytes_of(checkpoint, "名前 \"q\"\n"), "nam");
  EXPECT_EQ(bytes_of(checkpoint, "narrow"), "4f");
  EXPECT_THAT(checkpoint.find("empty")->shape, ElementsAre(3, 0));
  EXPECT_EQ(checkpoint.find("z")->dtype, Dtype::BF16);
  EXPECT_THAT(checkpoint.metadata(), ElementsAre(std::pair("", ""), std::pair("config", "{\"a\": \"é\"}")));
}

TEST(SafetensorsWriter, writes_a_file_without_tensors) {
  TemporaryFolder folder;
  SafetensorsWriter(folder / "out.safetensors", {}).finish();

  EXPECT_THAT(Checkpoint::open(folder / "out.safetensors").tensors(), IsEmpty());
}

TEST(SafetensorsWriter, aligns_data_to_64_bytes_whatever_the_names) {
  TemporaryFolder folder;
  for (std::size_t length = 0; length < 70; ++length) {
    TensorData tensor{{std::string(length, 'n'), Dtype::U8, {1}}, as_bytes("x")};
    write_safetensors(folder / "out.safetensors", std::span(&tensor, 1));

    Checkpoint checkpoint = Checkpoint::open(folder / "out.safetensors");
    ASSERT_EQ(checkpoint.shards().at(0).header_size % 64, 0u) << length;
  }
}

TEST(SafetensorsWriter, takes_pieces_that_end_anywhere) {
  TemporaryFolder folder;
  std::string data = "0123456789abcdefghij";
  SafetensorsWriter writer(folder / "out.safetensors", {{"a", Dtype::U8, {7}}, {"b", Dtype::U8, {13}}});
  for (std::size_t begin = 0; begin < data.size(); begin += 3) {
    writer.append(as_bytes(std::string_view(data).substr(begin, 3)));
  }
  writer.finish();
  Checkpoint checkpoint = Checkpoint::open(folder / "out.safetensors");

  EXPECT_EQ(bytes_of(checkpoint, "a") + bytes_of(checkpoint, "b"), data);
}

TEST(SafetensorsWriter, shows_no_file_before_it_is_finished_and_none_if_it_never_is) {
  TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder / "out.safetensors", {{"a", Dtype::U8, {2}}});
    writer.append(as_bytes("x"));
    EXPECT_FALSE(std::filesystem::exists(folder / "out.safetensors"));
    EXPECT_THAT([&] { writer.finish(); },
                ThrowsError(ErrorKind::internal, HasSubstr("1 bytes of its table were not written")));
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SafetensorsWriter, refuses_more_bytes_than_its_table_has) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "out.safetensors", {{"a", Dtype::U8, {2}}});

  EXPECT_THAT([&] { writer.append(as_bytes("xyz")); },
              ThrowsError(ErrorKind::internal, HasSubstr("1 bytes more")));
}

TEST(SafetensorsWriter, refuses_tables_that_no_reader_would_take) {
  TemporaryFolder folder;
  auto refuses = [&](std::vector<TensorSpec> tensors, const char* reason) {
    EXPECT_THAT([&] { SafetensorsWriter(folder / "out.safetensors", tensors); },
                ThrowsError(ErrorKind::usage, AllOf(HasSubstr("out.safetensors"), HasSubstr(reason))));
  };

  refuses({{"a", Dtype::U8, {2}}, {"a", Dtype::U8, {3}}}, "tensor 'a' is given twice");
  refuses({{"__metadata__", Dtype::U8, {2}}}, "'__metadata__' cannot be a tensor's name");
  refuses({{std::string("a\0b", 3), Dtype::U8, {2}}}, "cannot be a tensor's name");
  refuses({{"a\xff", Dtype::U8, {2}}}, "not UTF-8");
  refuses({{"a", Dtype::U8, {-2}}}, "tensor 'a' of U8 [-2] has no size");
  refuses({{"a", Dtype::F4, {3}}}, "tensor 'a' of F4 [3] has no size");
  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SafetensorsWriter, on_a_full_disk_names_the_file_and_leaves_nothing_behind) {
  TemporaryFolder folder;
  {
    SafetensorsWriter writer(folder / "out.safetensors", {{"a", Dtype::U8, {1'000'000}}});
    FileSizeLimit full(100'000);
    EXPECT_THAT(
        [&] { writer.append(as_bytes(std::string(1'000'000, 'x'))); },
        ThrowsError(ErrorKind::io, AllOf(HasSubstr("out.safetensors: cannot write"), HasSubstr("too large")),
                    HasSubstr("ulimit -f")));
  }

  EXPECT_THAT(folder.names(), IsEmpty());
}

TEST(SafetensorsWriter, out_of_space_says_how_to_go_on) {
  TemporaryFolder folder;
  SafetensorsWriter writer(folder / "out.safetensors", {{"a", Dtype::U8, {4}}});
  FaultySyscalls faults;
  faults.fail_nth_write(1, ENOSPC);

  EXPECT_THAT([&] { writer.append(as_bytes("abcd")); },
              ThrowsError(ErrorKind::io, HasSubstr("out.safetensors: cannot write: no space left"),
                          HasSubstr("free space")));
}

TEST(SafetensorsWriter, without_its_folder_is_an_io_error) {
  EXPECT_THAT([] { SafetensorsWriter("/no/such/folder/out.safetensors", {}); },
              ThrowsError(ErrorKind::io, HasSubstr("/no/such/folder/out.safetensors")));
}

TEST(WriteSafetensors, refuses_data_of_the_wrong_size_and_leaves_nothing_behind) {
  TemporaryFolder folder;
  TensorData tensor{{"a", Dtype::F32, {2}}, as_bytes("1234")};

  EXPECT_THAT([&] { write_safetensors(folder / "out.safetensors", std::span(&tensor, 1)); },
              ThrowsError(ErrorKind::internal, HasSubstr("tensor 'a' of F32 [2] comes with 4 bytes")));
  EXPECT_THAT(folder.names(), IsEmpty());
}

}  // namespace
}  // namespace sluice::bytes
