// What is said about every byte of a checkpoint, whichever way it is read.
#include "bytes/format/audit.h"
#include "support/random_checkpoint.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::bytes {
namespace {

using test::SyntheticFile;
using ::testing::ElementsAre;
using ::testing::Not;

std::string xxh3(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

const TensorAudit& audit_of(const Audit& audit, const Checkpoint& checkpoint, std::string_view name) {
  return audit.tensors[static_cast<std::size_t>(checkpoint.find(name) - checkpoint.tensors().data())];
}

constexpr ReadBackend kBackends[] = {ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                                     ReadBackend::uring};

TEST(Audit, has_the_checksum_of_every_tensor_and_file_whichever_way_they_are_read) {
  std::mt19937 random(3);
  const test::RandomCheckpoint random_checkpoint(random, 3, 20, 100'000);
  const Checkpoint checkpoint = Checkpoint::open(random_checkpoint.path);
  for (const ReadBackend backend : kBackends) {
    for (const Bytes chunk : {kLeastChunk, kDefaultChunk}) {
      for (const unsigned threads : {1u, 4u}) {
        const Audit result = audit(checkpoint, {.backend = backend, .threads = threads, .chunk = chunk});

        for (const auto& [name, content] : random_checkpoint.contents)
          ASSERT_EQ(audit_of(result, checkpoint, name).checksum, xxh3(content)) << name;
        for (std::size_t i = 0; i < checkpoint.shards().size(); ++i)
          ASSERT_EQ(result.files[i], xxh3(test::file_content(checkpoint.shards()[i].path)));
      }
    }
  }
}

TEST(Audit, counts_values_whose_bytes_come_in_two_pieces) {
  // 64 KiB pieces of a tensor that begins at an odd offset end inside a value.
  constexpr std::int64_t kValues = 100'000;
  const auto file = SyntheticFile()
                        .tensor("odd", Dtype::U8, {1})
                        .header(fmt::format(R"({{"odd":{{"dtype":"U8","shape":[1],"data_offsets":[0,1]}},)"
                                            R"("x":{{"dtype":"F32","shape":[{}],"data_offsets":[1,{}]}}}})",
                                            kValues, 1 + 4 * kValues))
                        .append_data([] {
                          std::string bytes;
                          for (int i = 0; i < kValues; ++i) bytes += std::string("\0\0\x80\xff", 4);
                          return bytes;
                        }())
                        .write();
  const Checkpoint checkpoint = Checkpoint::open(file.path());
  ASSERT_EQ((checkpoint.find("x")->offset) % 4 != 0, true);

  for (const ReadBackend backend : kBackends) {
    const Audit result = audit(checkpoint, {.backend = backend, .chunk = kLeastChunk});

    EXPECT_EQ(audit_of(result, checkpoint, "x").non_finite, (NonFinite{0, kValues}));
    EXPECT_EQ(audit_of(result, checkpoint, "odd").non_finite, NonFinite());
  }
}

TEST(Audit, begins_anew_with_every_tensor) {
  const std::string nan("\xff\xff", 2), one("\x80\x3f", 2);
  const auto file = SyntheticFile()
                        .header(R"({"a":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},)"
                                R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[4,8]}})")
                        .append_data(nan + one + one + one)
                        .write();
  const Checkpoint checkpoint = Checkpoint::open(file.path());

  const Audit result = audit(checkpoint);

  EXPECT_EQ(audit_of(result, checkpoint, "a").non_finite, (NonFinite{1, 0}));
  EXPECT_EQ(audit_of(result, checkpoint, "b").non_finite, NonFinite());
}

TEST(Audit, has_a_checksum_for_what_is_empty) {
  const auto file = SyntheticFile().tensor("none", Dtype::F32, {0, 4}).write();
  const Checkpoint checkpoint = Checkpoint::open(file.path());

  const Audit result = audit(checkpoint);

  EXPECT_EQ(result.tensors.front().checksum, xxh3(""));
  EXPECT_THAT(result.files, ElementsAre(xxh3(test::file_content(file.path()))));
}

TEST(Audit, has_none_for_a_file_with_bytes_that_the_index_does_not_name) {
  test::TemporaryFolder folder;
  SyntheticFile()
      .tensor("a", Dtype::U8, {4})
      .tensor("extra", Dtype::U8, {4})
      .write_to(folder / "1.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {4}).write_to(folder / "2.safetensors");
  test::write_file(folder / "m.safetensors.index.json",
                   test::index_text({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));

  const Audit result = audit(Checkpoint::open(folder.path()));

  EXPECT_THAT(result.files, ElementsAre("", xxh3(test::file_content(folder / "2.safetensors"))));
}

TEST(Audit, can_be_interrupted) {
  const auto file = SyntheticFile().tensor("a", Dtype::U8, {1'000'000}).write();
  CancelToken cancel;
  cancel.cancel();

  EXPECT_THAT([&] { audit(Checkpoint::open(file.path()), {}, nullptr, &cancel); },
              test::ThrowsError(ErrorKind::interrupted, ::testing::_));
}

}  // namespace
}  // namespace sluice::bytes
