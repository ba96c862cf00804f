// What a run leaves of its checkpoints in the page cache.
#include "bytes/read/page_cache.h"
#include "compute/world.h"
#include "support/page_cache.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::test {
namespace {

using nlohmann::json;

// The demo's model, of which nothing is in the page cache when a run begins.
class PageCache : public ::testing::TestWithParam<const char*> {
 protected:
  PageCache() {
    fs::copy(demo_model(), model_);
    drop_from_page_cache(model_);
  }

  // What opening the file reads counts as there before: its header, and what the system reads ahead of that,
  // which are a large part of so small a file.
  double share_after(const Arguments& flags) {
    EXPECT_THAT(run(with(with(demo_clip(), {"--model", model_, "--report", folder_ / "report", "-o",
                                            folder_ / "clip.mp4"}),
                         with({"--read-backend", GetParam()}, flags))),
                Succeeds());
    return static_cast<double>(bytes::cached_bytes(model_)) / static_cast<double>(fs::file_size(model_));
  }

  TemporaryFolder folder_;
  const fs::path model_ = folder_ / "model.safetensors";
};

TEST_P(PageCache, holds_next_to_nothing_of_a_model_after_a_run_that_drops) {
  EXPECT_LT(share_after({"--cache", "drop"}), 0.15);
}

TEST_P(PageCache, holds_the_model_after_a_run_that_keeps) {
  EXPECT_GT(share_after({"--cache", "keep"}), 0.9);
}

INSTANTIATE_TEST_SUITE_P(After, PageCache, ::testing::Values("auto", "mmap", "pread"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace sluice::test
