// `sluice verify`: what it says of files that are right, of files that are not, and of values.
#include "cli/world.h"

#include <csignal>
#include <random>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

SyntheticFile with_values(const std::string& name, std::string_view bf16) {
  return SyntheticFile()
      .header(fmt::format(R"({{"{}":{{"dtype":"BF16","shape":[{}],"data_offsets":[0,{}]}}}})", name,
                          bf16.size() / 2, bf16.size()))
      .append_data(bf16);
}

const std::string kNan("\xc0\x7f", 2), kInfinity("\x80\xff", 2), kOne("\x80\x3f", 2);

TEST(Verify, says_that_headers_and_sizes_are_right) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::F32, {4}).write();

  const Outcome text = run({"verify", file.path()});
  const json result = result_of({"verify", file.path()});

  ASSERT_THAT(text, Succeeds());
  EXPECT_THAT(text.out, HasSubstr("1 tensor, 16 B, in 1 file: headers and sizes are right\n"));
  EXPECT_EQ(result.at("files").at(0).at("file"), "model.safetensors");
  EXPECT_EQ(result.at("files").at(0).at("bytes"), std::filesystem::file_size(file.path()));
  EXPECT_THAT(result.at("files").at(0).at("header_checksum").get<std::string>(),
              MatchesRegex("[0-9a-f]{32}"));
  EXPECT_FALSE(result.contains("tensors"));
}

TEST(Verify, reads_headers_only) {
  TemporaryFolder folder;
  write_huge(folder / "huge.safetensors", 1024);

  Start start{.arguments = {"verify", folder / "huge.safetensors"}};
  if (!kSanitized) start.address_space = KiB(400'000);

  EXPECT_THAT(run(start), Succeeds());
}

TEST(Verify, lists_every_shard_that_is_bad) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {100}).cut_last(1).write_to(folder / "1.safetensors");
  write_file(folder / "2.safetensors", "<!DOCTYPE html><html></html>");
  SyntheticFile().tensor("d", Dtype::U8, {1}).write_to(folder / "4.safetensors");
  write_file(
      folder / "m.safetensors.index.json",
      index_text(
          {{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "3.safetensors"}, {"d", "4.safetensors"}}));

  EXPECT_THAT(run({"verify", folder.path()}),
              Refuses(3, AllOf(HasSubstr("3 of 4 shards cannot be used"), HasSubstr("1.safetensors: "),
                               HasSubstr("2.safetensors: "), HasSubstr("3.safetensors: the shard is missing"),
                               Not(HasSubstr("4.safetensors: ")))));
}

TEST(Verify, lists_every_component_that_is_bad) {
  TemporaryFolder folder;
  write_file(folder / "model_index.json", "{}");
  for (const char* name : {"vae", "transformer", "vocoder"}) {
    std::filesystem::create_directory(folder / name);
    SyntheticFile()
        .tensor("a", Dtype::U8, {9})
        .cut_last(name[1] == 'a' ? 1 : 0)
        .write_to(folder.path() / name / "m.safetensors");
  }
  std::filesystem::resize_file(folder / "transformer/m.safetensors", 20);

  EXPECT_THAT(
      run({"verify", folder.path()}),
      Refuses(3, AllOf(HasSubstr("2 of 3 components cannot be used"), HasSubstr("vae/m.safetensors: "),
                       HasSubstr("transformer/m.safetensors: "), Not(HasSubstr("vocoder/")))));
}

TEST(Verify, tells_what_is_odd) {
  TemporaryFolder folder;
  SyntheticFile()
      .tensor("a", Dtype::U8, {1})
      .tensor("extra", Dtype::U8, {1})
      .write_to(folder / "1.safetensors");
  write_file(folder / "m.safetensors.index.json", index_text({{"a", "1.safetensors"}}));

  EXPECT_THAT(run({"verify", folder.path()}).out, HasSubstr("warning: "));
  EXPECT_EQ(result_of({"verify", folder.path()}).at("warnings").size(), 1u);
}

TEST(DeepVerify, prints_a_line_for_each_tensor_and_file) {
  const WrittenFile file =
      SyntheticFile().tensor("b", Dtype::U8, {4}).tensor("a\\u001b", Dtype::I32, {2}).write();

  const Outcome outcome = run({"verify", "--deep", "-q", file.path()});

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, MatchesRegex("[0-9a-f]{32}  I32     \\[2\\] +8 B  a\\\\x1b\n"
                                        "[0-9a-f]{32}  U8      \\[4\\] +4 B  b\n"
                                        "[0-9a-f]{32}  whole file model.safetensors: .*\n"
                                        "2 tensors, 12 B, in 1 file: .*GiB/s\n"));
}

TEST(DeepVerify, gives_the_same_checksums_however_the_file_is_read) {
  std::mt19937 random(5);
  SyntheticFile file;
  for (int i = 0; i < 50; ++i)
    file.tensor(fmt::format("t{}", i), Dtype::U8, {static_cast<std::int64_t>(random() % 200'000)});
  const WrittenFile written = file.write();
  auto checksums = [&](const Arguments& flags) {
    const json result = result_of(with({"verify", "--deep", written.path()}, flags));
    return std::pair(result.at("tensors"), result.at("files"));
  };

  const auto expected = checksums({});
  EXPECT_EQ(expected.first.size(), 50u);
  for (const char* backend : {"mmap", "pread", "uring"}) {
    for (const char* chunk : {"64KiB", "4MiB"}) {
      for (const char* threads : {"1", "4"}) {
        EXPECT_EQ(checksums({"--read-backend", backend, "--chunk", chunk, "--threads", threads}), expected)
            << backend << " " << chunk << " " << threads;
      }
    }
  }
}

TEST(DeepVerify, names_tensors_that_hold_what_is_not_finite) {
  const WrittenFile file = with_values("w", kOne + kNan + kInfinity + kNan).write();

  EXPECT_THAT(run({"verify", file.path()}), Succeeds());  // only the values are wrong
  const Outcome text = run({"verify", "--deep", "-q", file.path()});
  EXPECT_THAT(text,
              Refuses(3, HasSubstr("model.safetensors: 1 tensor holds values that are not finite: 'w' (2 "
                                   "NaN and 1 infinite)")));
  EXPECT_THAT(text.out, HasSubstr("  holds 2 NaN and 1 infinite\n"));

  const Outcome outcome = run({"verify", "--deep", "--json", "-q", file.path()});
  const json result = json::parse(outcome.out);
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, IsEmpty());
  EXPECT_EQ(result.at("non_finite"), json({"w"}));
  EXPECT_EQ(result.at("tensors").at(0).at("nan"), 2);
  EXPECT_EQ(result.at("tensors").at(0).at("infinite"), 1);
  EXPECT_EQ(result.at("error").at("kind"), "corrupt_file");
}

TEST(DeepVerify, compares_with_the_checksums_of_another_copy) {
  TemporaryFolder folder;
  const WrittenFile original =
      SyntheticFile().tensor("a", Dtype::U8, {8}).tensor("b", Dtype::U8, {8}).write();
  SyntheticFile()
      .tensor("a", Dtype::U8, {8})
      .tensor("b", Dtype::U8, {7})
      .append_data("!")
      .with_field("b", "shape", "[8]")
      .with_field("b", "data_offsets", "[8,16]")
      .write_to(folder / "changed");
  SyntheticFile().tensor("a", Dtype::U8, {8}).tensor("c", Dtype::U8, {8}).write_to(folder / "renamed");
  write_file(folder / "sums", run({"verify", "--deep", "--json", "-q", original.path()}).out);
  auto compare = [&](const std::filesystem::path& path) {
    return run({"verify", "--deep", "-q", path, "--checksums", folder / "sums"});
  };

  EXPECT_THAT(compare(original.path()), Succeeds());
  EXPECT_THAT(compare(folder / "changed"), Refuses(3, HasSubstr("\n  1 differ: 'b'")));
  EXPECT_THAT(compare(folder / "renamed"),
              Refuses(3, AllOf(HasSubstr("\n  1 missing: 'b'"), HasSubstr("\n  1 not in the list: 'c'"))));
}

TEST(DeepVerify, refuses_a_list_that_is_none) {
  const WrittenFile file = SyntheticFile().tensor("a", Dtype::U8, {8}).write();
  TemporaryFolder folder;

  for (const std::string& text :
       {std::string("{}"), std::string("[1]"), std::string(R"({"tensors":[{"name":1}]})")}) {
    write_file(folder / "sums", text);
    EXPECT_THAT(run({"verify", "--deep", file.path(), "--checksums", folder / "sums"}),
                Refuses(3, HasSubstr("sums: holds no list of checksums"), HasSubstr("--deep --json")));
  }
  write_file(folder / "sums", std::string(1'000'000, '['));
  EXPECT_THAT(run({"verify", "--deep", file.path(), "--checksums", folder / "sums"}),
              Refuses(3, HasSubstr("sums is nested deeper than")));
  EXPECT_THAT(run({"verify", file.path(), "--checksums", folder / "sums"}),
              Refuses(2, HasSubstr("--checksums requires --deep")));
}

TEST(DeepVerify, takes_a_diffusers_folder) {
  TemporaryFolder folder;
  write_file(folder / "model_index.json", "{}");
  for (const char* name : {"vae", "transformer"}) {
    std::filesystem::create_directory(folder / name);
    SyntheticFile().tensor("w", Dtype::U8, {9}).write_to(folder.path() / name / "m.safetensors");
  }

  const json result = result_of({"verify", "--deep", folder.path()});

  EXPECT_THAT(names_in(result.at("tensors")), ElementsAre("transformer/w", "vae/w"));
  EXPECT_EQ(result.at("files").at(1).at("file"), "vae/m.safetensors");
}

TEST(DeepVerify, can_be_interrupted) {
  TemporaryFolder folder;
  write_huge(folder / "huge.safetensors", 1024);
  Program program({.arguments = {"verify", "--deep", folder / "huge.safetensors", "--cache", "drop"}});
  ASSERT_TRUE(program.wait_for("load         0/1048576 MiB"));
  program.send(SIGINT);

  EXPECT_THAT(program.finish(), Fails(130, HasSubstr("interrupted")));
}

}  // namespace
}  // namespace sluice::test
