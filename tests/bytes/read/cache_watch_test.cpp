#include "bytes/read/cache_watch.h"

#include "bytes/read/page_cache.h"
#include "support/page_cache.h"
#include "support/synthetic_file.h"

#include <sluice/load.h>

#include <gmock/gmock.h>

#include <vector>

namespace sluice::bytes {
namespace {

using test::drop_from_page_cache;
using test::SyntheticFile;
using test::TemporaryFolder;

// 16 MiB of which nothing is in the page cache but what opening it reads.
class Watched : public ::testing::Test {
 protected:
  Watched() {
    SyntheticFile().tensor("a", Dtype::U8, {MiB(8)}).tensor("b", Dtype::U8, {MiB(8)}).write_to(path_);
    drop_from_page_cache(path_);
    checkpoint_ = Checkpoint::open(path_);
  }

  double cached_share() const {
    return static_cast<double>(cached_bytes(path_)) / static_cast<double>(MiB(16));
  }
  void read(const char* name) const {
    std::vector<std::byte> bytes(MiB(8));
    checkpoint_.read(*checkpoint_.find(name), bytes);
  }

  TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "model.safetensors";
  Checkpoint checkpoint_;
};

TEST_F(Watched, file_is_what_it_was_after_each_drop) {
  CacheWatch watch(checkpoint_);
  const double before = cached_share();

  for (const char* name : {"a", "b", "a"}) {
    read(name);
    EXPECT_GT(cached_share(), 0.45);
    watch.drop();
    EXPECT_LE(cached_share(), before + 0.01);
  }
}

TEST_F(Watched, file_is_what_it_was_at_the_end) {
  const double before = cached_share();
  {
    const CacheWatch watch(checkpoint_);
    read("b");
  }

  EXPECT_LE(cached_share(), before + 0.01);
}

TEST_F(Watched, file_keeps_what_was_there) {
  read("b");
  read("a");
  {
    CacheWatch watch(checkpoint_);
    watch.drop();
  }

  EXPECT_GT(cached_share(), 0.99);
}

}  // namespace
}  // namespace sluice::bytes
