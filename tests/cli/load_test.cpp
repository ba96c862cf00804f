// `sluice load`: what each flag does to what is read, and how.
#include "bytes/load/huge_pages.h"
#include "cli/world.h"

#include <sluice/units.h>

#include <fcntl.h>
#include <unistd.h>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class Load : public ::testing::Test {
 protected:
  // One tensor of 1 MiB and a small one.
  WrittenFile file_ =
      SyntheticFile().tensor("large", Dtype::U8, {1 << 20}).tensor("small", Dtype::F32, {3}).write();
  static constexpr Bytes kBytes = (1 << 20) + 12;

  json load(const Arguments& flags) const { return result_of(with({"load", file_.path()}, flags)); }

  void write_large(std::int64_t mib) {
    file_ = SyntheticFile().tensor("large", Dtype::U8, {mib << 20}).write();
  }
};

// Of a file in the build folder: that for temporary files may lie in memory, where nothing can be dropped.
class LoadFromDisk : public ::testing::Test {
 protected:
  LoadFromDisk() {
    SyntheticFile().tensor("large", Dtype::U8, {32 << 20}).tensor("small", Dtype::F32, {3}).write_to(path_);
  }

  // With nothing of the file in the page cache before.
  json load_cold(const Arguments& flags) const {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ::fsync(descriptor);
    ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED);
    ::close(descriptor);
    return load(flags);
  }
  json load(const Arguments& flags) const { return result_of(with({"load", path_}, flags)); }

  TemporaryFolder folder_{SLUICE_BINARY_DIR};
  std::filesystem::path path_ = folder_ / "model.safetensors";
};

TEST_F(Load, reports_what_was_read_and_how) {
  for (const char* into : {"fresh", "touched", "nowhere"}) {
    const json result = load({"--into", into});

    EXPECT_EQ(result.at("bytes"), kBytes) << into;
    EXPECT_GT(result.at("seconds"), 0.0);
    EXPECT_GT(result.at("gib_per_second"), 0.0);
    EXPECT_GE(result.at("requests"), 1);
    EXPECT_GE(result.at("touch_seconds"), 0.0);
    EXPECT_GE(result.at("page_faults"), 0);
    EXPECT_GE(result.at("cpu_seconds"), 0.0);
    EXPECT_GT(result.at("peak_anonymous"), 0);
    EXPECT_GE(result.at("cached_before"), 0.0);
    EXPECT_LE(result.at("cached_after"), 1.0);
    EXPECT_GT(result.at("memory").at("available"), result.at("memory").at("needed"));
    EXPECT_EQ(result.at("warnings"), json::array());
    ASSERT_EQ(result.at("shards").size(), 1u);
    const json& shard = result.at("shards").at(0);
    EXPECT_EQ(shard.at("file"), file_.path().string());
    EXPECT_EQ(shard.at("bytes"), kBytes);
    EXPECT_EQ(shard.at("requests"), result.at("requests"));
    EXPECT_GE(shard.at("threads"), 1);
    EXPECT_GE(shard.at("cached_before"), 0.0);
    EXPECT_THAT(shard.at("backend").get<std::string>(), Not(IsEmpty()));
    EXPECT_THAT(shard.at("reason").get<std::string>(), Not(IsEmpty()));
  }
}

TEST_F(Load, touches_memory_before_the_clock_starts_if_asked) {
  EXPECT_GT(load({"--into", "touched"}).at("prefault_seconds"), 0.0);
  EXPECT_EQ(load({"--into", "touched"}).at("touch_seconds"), 0.0);
  EXPECT_EQ(load({"--into", "fresh"}).at("prefault_seconds"), 0.0);
  EXPECT_GT(load({"--into", "fresh"}).at("touch_seconds"), 0.0);
}

TEST_F(Load, into_nowhere_needs_no_memory_for_tensors) {
  write_large(64);

  const json nowhere = load({"--into", "nowhere", "--pool", "1MiB"});

  EXPECT_EQ(nowhere.at("memory").at("needed"), MiB(1));
  EXPECT_GT(nowhere.at("pool_bytes"), 0);
  EXPECT_LE(nowhere.at("pool_bytes"), MiB(2));  // in whole huge pages
  EXPECT_GE(load({"--pool", "1MiB"}).at("memory").at("needed"), MiB(65));
  if (!kSanitized) {
    EXPECT_LT(nowhere.at("peak_anonymous"), MiB(32));
  }
}

TEST_F(Load, takes_the_backend_that_is_asked_for) {
  auto backend = [&](const char* name) {
    return load({"--read-backend", name}).at("shards").at(0).at("backend").get<std::string>();
  };

  EXPECT_EQ(backend("mmap"), "mmap");
  EXPECT_EQ(backend("pread"), "pread");
  // Where the system forbids rings, threads read instead, with a warning.
  EXPECT_THAT(backend("uring"), AnyOf(StartsWith("uring"), StartsWith("pread")));
}

TEST_F(Load, reads_directly_or_says_why_it_cannot) {
  const Outcome outcome = run({"load", "--read-backend", "direct", "--json", "--quiet", file_.path()});

  if (outcome.code == 0) {
    EXPECT_EQ(json::parse(outcome.out).at("shards").at(0).at("backend"), "direct");
  } else {
    EXPECT_EQ(outcome.code, 5);
    EXPECT_THAT(json::parse(outcome.out).at("error").at("hint").get<std::string>(),
                HasSubstr("--read-backend pread"));
  }
}

TEST_F(Load, reads_in_chunks_by_threads) {
  auto pread = [&](const Arguments& flags) { return load(with({"--read-backend", "pread"}, flags)); };

  EXPECT_EQ(pread({}).at("requests"), 1);
  EXPECT_GE(pread({"--chunk", "64KiB"}).at("requests"), 16);
  EXPECT_GE(pread({"--pool", "128KiB"}).at("requests"), 16);  // two chunks must fit into it
  EXPECT_EQ(pread({"--chunk", "64KiB", "--threads", "3"}).at("shards").at(0).at("threads"), 3);
  EXPECT_EQ(pread({"--chunk", "64KiB", "--threads", "1"}).at("shards").at(0).at("threads"), 1);
}

TEST_F(LoadFromDisk, lets_go_of_what_it_brought_into_the_page_cache_or_keeps_it) {
  const json dropped = load_cold({"--read-backend", "pread", "--cache", "drop"});
  const json kept = load_cold({"--cache", "keep"});
  const json left_alone = load({"--cache", "drop"});
  const json prefetched = load_cold({"--cache", "prefetch"});

  EXPECT_LT(dropped.at("cached_after"), 0.01);
  EXPECT_LT(kept.at("cached_before"), 0.5);
  EXPECT_GE(kept.at("cached_after"), 0.99);
  EXPECT_GE(left_alone.at("cached_after"), 0.99);  // it was there before
  EXPECT_GE(prefetched.at("cached_after"), 0.99);
}

TEST_F(LoadFromDisk, reads_many_small_tensors_through_the_page_cache) {
  const json result = load_cold({"--include", "small", "--into", "nowhere", "--small-reads-cap", "0"});

  EXPECT_THAT(result.at("shards").at(0).at("reason").get<std::string>(),
              HasSubstr("1 reads are smaller than 64 KiB, more than 0"));
}

TEST_F(Load, repeats_into_the_same_memory) {
  write_large(32);

  const json result = load({"--repeat", "3", "--huge-pages", "never"});

  ASSERT_EQ(result.at("runs").size(), 3u);
  EXPECT_GE(result.at("runs").at(0).at("page_faults"), 32 * 256 / 64);  // of 64 KiB at most
  EXPECT_LT(result.at("runs").at(2).at("page_faults"),
            result.at("runs").at(0).at("page_faults").get<int>() / 2);
  EXPECT_EQ(result.at("runs").at(2).at("touch_seconds"), 0.0);
  EXPECT_EQ(result.at("seconds"), result.at("runs").at(2).at("seconds"));
}

TEST_F(Load, takes_huge_pages_as_asked) {
  const bool offered = bytes::offers_huge_pages(file_content("/sys/kernel/mm/transparent_hugepage/enabled"));

  EXPECT_EQ(load({"--huge-pages", "always"}).at("huge_pages"), offered);
  EXPECT_EQ(load({"--huge-pages", "never"}).at("huge_pages"), false);
}

TEST_F(Load, shows_progress_with_a_rate_unless_quiet) {
  const Outcome shown = run({"load", file_.path()});

  EXPECT_THAT(shown.err, AllOf(HasSubstr("load         0/2 MiB"), HasSubstr("load         2/2 MiB")));
  EXPECT_THAT(shown.out, AllOf(HasSubstr("GiB/s"), HasSubstr("s of CPU"), HasSubstr("page cache:"),
                               HasSubstr("model.safetensors: ")));
  EXPECT_THAT(run({"load", "--quiet", file_.path()}).err, IsEmpty());
}

TEST_F(Load, says_at_v_what_was_chosen_for_each_shard_and_why) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {10}).write_to(folder / "1.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {10}).write_to(folder / "2.safetensors");
  write_file(folder / "m.safetensors.index.json",
             index_text({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));

  const Outcome outcome = run({"load", "-v", "--quiet", "--read-backend", "pread", folder.path()});

  for (const char* name : {"1.safetensors", "2.safetensors"}) {
    EXPECT_THAT(outcome.err,
                HasSubstr(std::string(name) + ": pread by 1 thread: asked for (--read-backend pread)\n"));
  }
  EXPECT_THAT(outcome.err, StartsWith("sluice: "));
}

TEST_F(Load, opens_only_the_shards_that_are_needed) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {10}).write_to(folder / "1.safetensors");
  write_file(folder / "m.safetensors.index.json",
             index_text({{"a", "1.safetensors"}, {"b", "not-there.safetensors"}}));

  EXPECT_EQ(result_of({"load", folder.path(), "--include", "a"}).at("bytes"), 10);
  EXPECT_THAT(run({"load", folder.path()}),
              Refuses(3, HasSubstr("not-there.safetensors: the shard is missing")));
}

TEST_F(Load, takes_any_spelling_of_a_path) {
  TemporaryFolder folder;
  const std::filesystem::path name = "модель 模型 'é\".safetensors";
  std::filesystem::copy(file_.path(), folder.path() / name);
  std::filesystem::create_symlink(folder.path() / name, folder / "link.safetensors");

  for (const Arguments& path : {Arguments{name}, {"./" + name.string()}, {"link.safetensors"}, {"."}}) {
    if (path.front() == ".") std::filesystem::remove(folder / "link.safetensors");
    const Outcome outcome =
        run(Start{.arguments = with({"load", "--json", "-q"}, path), .folder = folder.path()});
    ASSERT_THAT(outcome, Succeeds());
    EXPECT_EQ(json::parse(outcome.out).at("bytes"), kBytes);
  }
}

}  // namespace
}  // namespace sluice::test
