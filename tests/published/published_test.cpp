// A published checkpoint, read by sluice in every way, against what the safetensors library reads.
// run.sh fetches it and says in the environment where it lies.
#include "support/temporary_folder.h"

#include <sluice/checkpoint.h>
#include <sluice/load.h>
#include <sluice/sinks.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <span>
#include <stdexcept>

namespace sluice {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(fmt::format("{} is not set: start tests/published/run.sh", name));
  return value;
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class PublishedCheckpoint : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::filesystem::path folder = environment("SLUICE_EXPECTED");
    tensors_ = json::parse(test::file_content(folder / "tensors.json"));
    content_ = test::file_content(folder / "tensors.bin");
  }

  const Checkpoint checkpoint_ = Checkpoint::open(environment("SLUICE_CHECKPOINT"));

  // Calls check(row, bytes) for every tensor that the library found.
  static void for_each_expected(const std::function<void(const json&, std::string_view)>& check) {
    std::size_t begin = 0;
    for (const json& row : tensors_) {
      const auto size = row.at("size").get<std::size_t>();
      check(row, std::string_view(content_).substr(begin, size));
      begin += size;
    }
  }

  // Names of tensors whose bytes differ, or that are not there.
  static std::vector<std::string> differing(const TensorDictionary& dictionary) {
    std::vector<std::string> names;
    for_each_expected([&](const json& row, std::string_view content) {
      const auto* entry = dictionary.find(row.at("name").get<std::string>());
      if (entry == nullptr || text_of(entry->bytes) != content) names.push_back(row.at("name"));
    });
    return names;
  }

  static inline json tensors_;
  static inline std::string content_;
};

TEST_F(PublishedCheckpoint, has_the_tensors_that_the_library_sees) {
  ASSERT_GT(tensors_.size(), 50u);
  ASSERT_EQ(checkpoint_.tensors().size(), tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const TensorInfo& tensor = checkpoint_.tensors()[i];
    EXPECT_EQ(tensor.name, tensors_[i].at("name"));
    EXPECT_EQ(dtype_name(tensor.dtype), tensors_[i].at("dtype").get<std::string>());
    EXPECT_EQ(json(tensor.shape), tensors_[i].at("shape"));
  }
}

TEST_F(PublishedCheckpoint, is_read_tensor_by_tensor_to_the_same_bytes) {
  for_each_expected([&](const json& row, std::string_view content) {
    const TensorInfo& tensor = *checkpoint_.find(row.at("name").get<std::string>());
    std::string bytes(tensor.size, '?');

    checkpoint_.read(tensor, std::as_writable_bytes(std::span(bytes)));

    EXPECT_TRUE(bytes == content) << tensor.name;
  });
}

TEST_F(PublishedCheckpoint, is_loaded_by_every_backend_to_the_same_bytes) {
  const LoadPlan plan = plan_load(checkpoint_);
  auto slab = std::make_shared<Slab>();
  for (ReadBackend backend : {ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread,
                              ReadBackend::direct, ReadBackend::uring}) {
    for (CachePolicy cache : {CachePolicy::keep, CachePolicy::drop}) {
      LoadReport report;
      const TensorDictionary dictionary =
          load_dictionary(plan, slab, {.backend = backend, .cache = cache}, &report);

      EXPECT_THAT(differing(dictionary), IsEmpty()) << to_string(backend);
      fmt::print("{:<6} {:<5} read {} by {}\n", to_string(backend), to_string(cache),
                 format_bytes(report.bytes), report.shards.at(0).backend);
      std::ranges::fill(slab->bytes(), std::byte{0xee});  // the next one finds nothing of this one
    }
  }
}

TEST_F(PublishedCheckpoint, written_anew_loads_to_the_same_bytes) {
  test::TemporaryFolder folder;

  load_to_file(plan_load(checkpoint_), folder / "copy.safetensors");

  EXPECT_THAT(differing(load_dictionary(plan_load(Checkpoint::open(folder / "copy.safetensors")))),
              IsEmpty());
}

}  // namespace
}  // namespace sluice
