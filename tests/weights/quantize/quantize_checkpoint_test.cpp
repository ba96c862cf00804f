#include "weights/quantize/quantize_checkpoint.h"

#include "support/faulty_syscalls.h"
#include "support/throws_error.h"
#include "weights/quantize/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using testing::AllOf;
using testing::HasSubstr;

template <typename T>
Content bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Content text_bytes(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What the plain arithmetic makes of the tensors.
std::map<std::string, Content> expected(const std::vector<MadeTensor>& tensors, QuantFormat format) {
  std::map<std::string, Content> contents;
  for (const MadeTensor& tensor : tensors) {
    const std::string& name = tensor.spec.name;
    const Content stored = tensor.content();
    const std::size_t count = tensor.values.size();
    if (!name.ends_with("matrix")) {
      contents[name] = stored;
    } else if (format == QuantFormat::fp8) {
      const float scale = f8_e4m3_scale(reference::largest_magnitude(tensor.spec.dtype, stored));
      contents[name].resize(count);
      reference::encode_f8_e4m3(tensor.spec.dtype, stored, scale, contents[name]);
      contents[name + "_scale"] = bytes_of(std::vector<float>{scale});
    } else {
      std::vector<float> absmax((count + kNf4BlockValues - 1) / kNf4BlockValues);
      contents[name].resize((count + 1) / 2);
      reference::encode_nf4(tensor.spec.dtype, stored, absmax, contents[name]);
      contents[name + ".absmax"] = bytes_of(absmax);
      contents[name + ".quant_map"] = bytes_of(std::vector<float>(kNf4Values.begin(), kNf4Values.end()));
      contents[name + ".quant_state.bitsandbytes__nf4"] =
          text_bytes(nf4_quant_state({.name = name, .dtype = tensor.spec.dtype, .shape = tensor.spec.shape}));
    }
  }
  return contents;
}

class QuantizeCheckpoint : public testing::TestWithParam<QuantFormat> {
 protected:
  QuantizeCheckpoint() { write_tensors(source_, tensors_); }

  Made usual() const { return {.format = GetParam()}; }

  TemporaryFolder folder_;
  const std::filesystem::path source_ = folder_ / "model.safetensors", target_ = folder_ / "quantized";
  const std::vector<MadeTensor> tensors_ = usual_tensors();
};

INSTANTIATE_TEST_SUITE_P(Formats, QuantizeCheckpoint, testing::Values(QuantFormat::fp8, QuantFormat::nf4),
                         [](const auto& format) {
                           return std::string(format.param == QuantFormat::fp8 ? "fp8" : "nf4");
                         });

TEST_P(QuantizeCheckpoint, gives_what_the_plain_arithmetic_gives_and_copies_the_rest) {
  make(source_, target_, usual());

  EXPECT_EQ(contents_of(target_), expected(tensors_, GetParam()));
}

TEST_P(QuantizeCheckpoint, gives_the_same_bytes_in_every_split_of_memory_and_way_of_reading) {
  Made made = usual();
  made.shard_size = KiB(200);
  make(source_, target_, made);
  const auto undisturbed = files_of(target_);
  for (const ReadBackend backend : {ReadBackend::pread, ReadBackend::direct, ReadBackend::mmap}) {
    for (const Bytes held : {Bytes(0), KiB(30), MiB(2)}) {
      SCOPED_TRACE(held);
      made.read.backend = backend;
      // Small pieces and blocks that no tensor's end falls on.
      made.memory = {.pool = KiB(256), .held = held, .write = {.block = KiB(12), .blocks = 2}};
      const TemporaryFolder other;

      make(source_, other / "quantized", made);

      EXPECT_EQ(files_of(other / "quantized"), undisturbed);
    }
  }
}

TEST_P(QuantizeCheckpoint, keeps_shards_below_their_size_unless_a_tensor_is_larger) {
  Made made = usual();
  made.shard_size = KiB(100);
  make(source_, target_, made);

  const Checkpoint checkpoint = Checkpoint::open(target_);
  ASSERT_GT(checkpoint.shards().size(), 2u);
  std::map<std::size_t, std::size_t> matrices;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.name.ends_with("matrix")) ++matrices[tensor.shard];
  }
  for (std::size_t i = 0; i < checkpoint.shards().size(); ++i) {
    const Shard& shard = checkpoint.shards()[i];
    const bool one_large = matrices[i] == 1;
    EXPECT_TRUE(one_large || shard.file_size - shard.header_size <= made.shard_size) << i;
  }
}

// Stops a run once so many shards are complete.
class StopAfter final : public Progress {
 public:
  StopAfter(std::filesystem::path folder, std::size_t shards) : folder_(std::move(folder)), shards_(shards) {}
  void at(std::string_view, std::int64_t, std::int64_t, std::string_view) override {
    std::size_t complete = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      complete += entry.path().filename().string().starts_with("model-");
    if (complete >= shards_) cancel.cancel();
  }
  CancelToken cancel;

 private:
  std::filesystem::path folder_;
  std::size_t shards_;
};

TEST_P(QuantizeCheckpoint, goes_on_after_the_last_complete_shard_to_the_same_bytes) {
  Made made = usual();
  made.shard_size = KiB(10);
  const TemporaryFolder other;
  make(source_, other / "quantized", made);
  StopAfter stop(folder_ / "quantized.partial", 2);
  made.progress = &stop;
  made.cancel = &stop.cancel;
  EXPECT_THAT([&] { make(source_, target_, made); }, ThrowsError(ErrorKind::interrupted, testing::_));
  EXPECT_FALSE(std::filesystem::exists(target_));
  write_file(folder_ / "quantized.partial/.model-00003-of-00005.safetensors.12345678.partial", "killed here");
  made.progress = nullptr;
  made.cancel = nullptr;

  const QuantizeCount count = make(source_, target_, made);

  EXPECT_EQ(count.taken_up, 2u);
  EXPECT_EQ(files_of(target_), files_of(other / "quantized"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "quantized.partial"));
}

TEST_P(QuantizeCheckpoint, on_a_full_disk_keeps_what_is_complete_and_goes_on_from_there) {
  Made made = usual();
  made.shard_size = KiB(10);
  const TemporaryFolder other;
  make(source_, other / "quantized", made);
  for (int write = 1; write < 200; ++write) {
    FaultySyscalls faults;
    // Direct writes that fail are tried once more through the page cache.
    faults.refuse_direct_open(EINVAL).fail_nth_write(write, ENOSPC);
    try {
      make(source_, target_, made);
      break;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
      EXPECT_THAT(error.hint(), HasSubstr("disk is full"));
      EXPECT_FALSE(std::filesystem::exists(target_));
    }
  }

  EXPECT_EQ(files_of(target_), files_of(other / "quantized"));
}

TEST_P(QuantizeCheckpoint, needs_no_thread_to_be_had) {
  const TemporaryFolder other;
  make(source_, other / "quantized", usual());
  FaultySyscalls faults;
  faults.refuse_threads_from(1);

  make(source_, target_, usual());

  EXPECT_EQ(files_of(target_), files_of(other / "quantized"));
  EXPECT_GT(faults.threads_asked_for(), 0);
}

TEST_P(QuantizeCheckpoint, refuses_what_is_not_finite_naming_file_tensor_and_element) {
  std::vector<MadeTensor> tensors = usual_tensors();
  tensors[4].values[599'999] = NAN;
  write_tensors(source_, tensors);
  for (const Bytes held : {Bytes(0), MiB(2)}) {
    Made made = usual();
    made.memory.held = held;

    EXPECT_THAT(
        [&] { make(source_, target_, made); },
        ThrowsError(ErrorKind::non_finite,
                    AllOf(HasSubstr("model.safetensors: tensor 'e.matrix' has NaN at element 599999"))));
  }
}

TEST_P(QuantizeCheckpoint, copies_what_is_not_finite_where_it_is_not_quantized) {
  std::vector<MadeTensor> tensors = usual_tensors();
  tensors[1].values[5] = INFINITY;
  write_tensors(source_, tensors);

  make(source_, target_, usual());

  EXPECT_EQ(contents_of(target_), expected(tensors, GetParam()));
}

TEST(QuantizeMemory, stays_within_its_limit_and_says_the_least_it_needs) {
  for (const Bytes limit : {MiB(24), MiB(64), MiB(200), MiB(448), GiB(4)})
    EXPECT_LE(split_memory(limit, MiB(128)).total(), limit);
  EXPECT_EQ(split_memory(GiB(4), MiB(128)).held, MiB(128));
  EXPECT_THAT([] { split_memory(MiB(4), 0); }, ThrowsError(ErrorKind::does_not_fit, HasSubstr("22.0 MiB"),
                                                           HasSubstr("--memory-limit 22MiB")));
  EXPECT_THAT([] { split_memory(MiB(70), 0, MiB(60)); },
              ThrowsError(ErrorKind::does_not_fit, HasSubstr("82.0 MiB")));
}

}  // namespace
}  // namespace sluice::weights
