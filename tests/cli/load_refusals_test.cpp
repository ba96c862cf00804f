// `sluice load` that cannot be: refused before a tensor is read, with the exit code of its kind.
#include "cli/world.h"

#include <sluice/units.h>

#include <csignal>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Row {
  const char* name;
  Arguments flags;
  std::string message, hint;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

class LoadUsage : public ::testing::TestWithParam<Row> {};

TEST_P(LoadUsage, is_refused_with_what_would_be_right) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {1}).write();

  const Outcome outcome = run(with({"load", file.path()}, GetParam().flags));

  EXPECT_THAT(outcome, Refuses(2, HasSubstr(GetParam().message), HasSubstr(GetParam().hint)));
  EXPECT_THAT(outcome.out, IsEmpty());
}

const Row kRows[] = {
    {"unknown_backend",
     {"--read-backend", "fast"},
     "'fast' is no read backend",
     "auto, mmap, pread, direct, uring"},
    {"unknown_cache", {"--cache", "maybe"}, "'maybe' is no cache policy", "auto, keep, drop, prefetch"},
    {"unknown_place", {"--into", "void"}, "--into 'void' is unknown", "fresh, touched, nowhere"},
    {"unknown_pages", {"--huge-pages", "yes"}, "--huge-pages 'yes' is unknown", "auto, always, never"},
    {"threads_below_0", {"--threads", "-1"}, "--threads '-1' is no number", "sluice load --help"},
    {"threads_absurd", {"--threads", "100000"}, "--threads 100000 is impossible", "1 and 1024"},
    {"depth_absurd", {"--depth", "257"}, "--depth 257 is impossible", "1 and 256"},
    {"chunk_too_small", {"--chunk", "1KiB"}, "a chunk of 1.0 KiB is outside its limits", "64.0 KiB to"},
    {"chunk_no_size", {"--chunk", "big"}, "'big' is no size", "512MiB"},
    {"pool_too_large", {"--pool", "5GiB"}, "a pool of 5.0 GiB is outside its limits", "to 4.0 GiB"},
    {"repeat_0", {"--repeat", "0"}, "--repeat 0 loads nothing", "--dry-run"},
    {"multiplier_0", {"--memory-multiplier", "0"}, "--memory-multiplier 0 is impossible", "from 1"},
    {"multiplier_nan", {"--memory-multiplier", "nan"}, "--memory-multiplier nan is impossible", "from 1"},
    {"rank_that_is_not_there", {"--rank", "2", "--world", "2"}, "rank 2 of 2 does not exist", ""},
    {"rename_without_name", {"--rename", "a"}, "--rename 'a' has no two names", "'model."},
    {"cast_to_nothing_known", {"--cast", "*=F32:float"}, "--cast: 'float' is no element type", "BF16"},
    {"output_and_place", {"-o", "x", "--into", "fresh"}, "--into excludes --output", "sluice load --help"},
    {"output_and_repeat", {"-o", "x", "--repeat", "2"}, "--repeat excludes --output", "sluice load --help"},
    {"output_that_is_a_folder", {"-o", "/tmp"}, "/tmp: is a folder", "add a file name"},
    {"unknown_flag", {"--treads", "2"}, "'--treads' is unknown", "did you mean --threads?"},
};
INSTANTIATE_TEST_SUITE_P(Of, LoadUsage, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

class LoadRefusals : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::filesystem::path huge_ = folder_ / "huge.safetensors";
};

TEST_F(LoadRefusals, names_what_the_filters_and_rules_miss) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {1}).write();

  EXPECT_THAT(run({"load", file.path(), "--include", "b*", "--include", "c"}),
              Refuses(3, AllOf(HasSubstr("'b*'"), HasSubstr("'c'"))));
  EXPECT_THAT(run({"load", file.path(), "--drop", "zzz", "--rename", "yyy=x"}),
              Refuses(3, AllOf(HasSubstr("zzz"), HasSubstr("yyy"))));
}

TEST_F(LoadRefusals, lists_all_shards_that_are_cut_short) {
  for (const char* name : {"1.safetensors", "2.safetensors"})
    SyntheticFile().tensor(name, Dtype::U8, {100}).cut_last(7).write_to(folder_ / name);
  write_file(folder_ / "m.safetensors.index.json",
             index_text({{"1.safetensors", "1.safetensors"}, {"2.safetensors", "2.safetensors"}}));

  EXPECT_THAT(run({"load", folder_.path()}),
              Refuses(3, AllOf(HasSubstr("2 of 2 shards"), HasSubstr("1.safetensors: "),
                               HasSubstr("2.safetensors: "))));
  EXPECT_THAT(run({"load", folder_ / "none.safetensors"}), Refuses(3, HasSubstr("no such file")));
}

TEST_F(LoadRefusals, of_what_does_not_fit_in_memory_come_before_a_byte_is_read) {
  write_huge(huge_, 1024);

  for (const Arguments& more : {Arguments{}, {"--dry-run"}, {"--into", "touched"}}) {
    EXPECT_THAT(
        run(with({"load", huge_}, more)),
        Refuses(
            4, AllOf(HasSubstr("huge.safetensors: not enough memory: needs 1.0 TiB"), HasSubstr("available")),
            HasSubstr("--world")));
  }
  const json error = json::parse(run({"load", huge_, "--json"}).out).at("error");
  EXPECT_EQ(error.at("kind"), "does_not_fit");
}

TEST_F(LoadRefusals, count_what_the_caller_needs_on_top) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {1 << 20}).write();
  auto needed = [&](const Arguments& more) {
    return result_of(with({"load", file.path(), "--dry-run"}, more)).at("memory").at("needed").get<Bytes>();
  };

  EXPECT_EQ(needed({"--memory-multiplier", "2"}), 2 * needed({}));
  // A pool alone of 4 TiB does not fit.
  EXPECT_THAT(run({"load", file.path(), "--pool", "4GiB", "--memory-multiplier", "1000"}),
              Refuses(4, HasSubstr("all times 1000"), HasSubstr("--pool")));
}

TEST_F(LoadRefusals, of_what_does_not_fit_on_the_disk_come_before_a_byte_is_read) {
  write_huge(huge_, 8 * 1024);

  EXPECT_THAT(
      run({"load", huge_, "-o", folder_ / "out"}),
      Refuses(4, HasSubstr("out: not enough disk space: needs 8.0 TiB"), HasSubstr("another folder")));
  EXPECT_THAT(folder_.names(), ElementsAre("huge.safetensors"));
}

TEST_F(LoadRefusals, are_all_that_a_dry_run_does) {
  // Reading a thousand GiB would not end within the time that run() grants.
  write_huge(huge_, 1024);

  const json result = result_of({"load", huge_, "--dry-run", "--into", "nowhere"});

  EXPECT_EQ(result.at("bytes"), GiB(1024));
  EXPECT_EQ(result.at("memory").at("needed"), MiB(32));
}

TEST_F(LoadRefusals, keep_what_is_there) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {1}).write();
  write_file(folder_ / "there", "mine");

  EXPECT_THAT(run({"load", file.path(), "-o", folder_ / "there"}),
              Refuses(2, HasSubstr("there: exists already"), HasSubstr("--overwrite")));
  EXPECT_EQ(file_content(folder_ / "there"), "mine");
  EXPECT_THAT(run({"load", file.path(), "-o", folder_ / "there", "--overwrite"}), Succeeds());
  EXPECT_THAT(run({"inspect", folder_ / "there"}), Succeeds());
}

TEST_F(LoadRefusals, keep_the_input) {
  SyntheticFile().tensor("a", Dtype::U8, {1}).write_to(folder_ / "1.safetensors");
  write_file(folder_ / "m.safetensors.index.json", index_text({{"a", "1.safetensors"}}));
  std::filesystem::create_symlink(folder_ / "1.safetensors", folder_ / "link");

  for (const char* input : {"1.safetensors", "m.safetensors.index.json", "."}) {
    for (const char* output : {"1.safetensors", "link"}) {
      EXPECT_THAT(run({"load", folder_ / input, "-o", folder_ / output, "--overwrite"}),
                  Refuses(2, HasSubstr("is an input of this run"), HasSubstr("another name")))
          << input << " " << output;
    }
  }
}

TEST_F(LoadRefusals, happen_to_nothing_that_is_interrupted) {
  write_huge(huge_, 1024);

  for (const int signal : {SIGINT, SIGTERM}) {
    Program program({.arguments = {"load", huge_, "--into", "nowhere", "--cache", "drop"}});
    ASSERT_TRUE(program.wait_for("load         0/1048576 MiB"));
    program.send(signal);

    EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted while loading"), HasSubstr("run again")));
  }
}

TEST_F(LoadRefusals, happen_to_no_file_that_is_half_written) {
  write_huge(huge_, 16);  // some seconds' work
  Program program({.arguments = {"load", huge_, "-o", folder_ / "out"}});
  ASSERT_TRUE(program.wait_for("load         0/16384 MiB"));
  program.send(SIGINT);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
  EXPECT_THAT(folder_.names(), ElementsAre("huge.safetensors"));
}

TEST_F(LoadRefusals, happen_while_memory_is_touched_too) {
  write_huge(huge_, 1);
  Program program({.arguments = {"load", huge_, "--into", "touched", "--repeat", "1000000"}});
  ASSERT_TRUE(program.wait_for("touch "));
  program.send(SIGINT);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
}

}  // namespace
}  // namespace sluice::test
