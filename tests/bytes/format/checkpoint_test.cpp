#include <sluice/checkpoint.h>

#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

using test::FaultySyscalls;
using test::index_text;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using test::write_file;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

std::string bytes_of(const Checkpoint& checkpoint, std::string_view name) {
  const TensorInfo& tensor = *checkpoint.find(name);
  std::string bytes(tensor.size, '\0');
  checkpoint.read(tensor, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

// "a" in one-…, "b" in two-…, and an index beside them.
void write_set(const TemporaryFolder& folder) {
  SyntheticFile().tensor("a", Dtype::F32, {2}).metadata("from", "one").write_to(folder / "one.safetensors");
  SyntheticFile().tensor("b", Dtype::BF16, {3}).metadata("from", "two").write_to(folder / "two.safetensors");
  write_file(folder / "model.safetensors.index.json",
             index_text({{"b", "two.safetensors"}, {"a", "one.safetensors"}}));
}

TEST(Checkpoint, lists_tensors_by_name_with_shape_dtype_and_place) {
  SyntheticFile file = SyntheticFile().tensor("b", Dtype::BF16, {2, 3}).tensor("a", Dtype::F32, {});
  Checkpoint checkpoint = Checkpoint::open(file.write().path());

  EXPECT_THAT(names_of(checkpoint), ElementsAre("a", "b"));
  const TensorInfo& b = *checkpoint.find("b");
  EXPECT_EQ(b.dtype, Dtype::BF16);
  EXPECT_THAT(b.shape, ElementsAre(2, 3));
  EXPECT_EQ(b.elements(), 6);
  EXPECT_EQ(b.size, 12u);
  EXPECT_EQ(b.offset, 8 + file.header_text().size());
  EXPECT_EQ(checkpoint.find("a")->elements(), 1);
  EXPECT_EQ(checkpoint.find("c"), nullptr);
}

TEST(Checkpoint, reads_the_bytes_of_a_tensor) {
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {5}).tensor("b", Dtype::U8, {4});
  Checkpoint checkpoint = Checkpoint::open(file.write().path());

  EXPECT_EQ(bytes_of(checkpoint, "a"), file.data().substr(0, 5));
  EXPECT_EQ(bytes_of(checkpoint, "b"), file.data().substr(5));
}

TEST(Checkpoint, keeps_its_file_open_after_the_name_is_gone) {
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {5});
  Checkpoint checkpoint = Checkpoint::open(file.write().path());  // the folder goes at the end of this line

  EXPECT_EQ(bytes_of(checkpoint, "a"), file.data());
}

TEST(Checkpoint, has_a_checksum_of_its_header_that_any_byte_changes) {
  auto checksum = [](const SyntheticFile& file) {
    return Checkpoint::open(file.write().path()).shards().at(0).header_checksum;
  };
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {5});

  EXPECT_EQ(checksum(file).size(), 32u);
  EXPECT_EQ(checksum(file), checksum(file));
  EXPECT_NE(checksum(file), checksum(SyntheticFile().tensor("b", Dtype::U8, {5})));
}

TEST(Checkpoint, checksum_of_a_known_header_is_xxh3_128) {
  // `printf '\x02\0\0\0\0\0\0\0{}' | xxh128sum`
  EXPECT_EQ(Checkpoint::open(SyntheticFile().write().path()).shards().at(0).header_checksum,
            "19aae81a9fc6b75c6d333529e3c47542");
}

TEST(Checkpoint, of_40_GiB_opens_by_its_header_alone) {
  TemporaryFolder folder;
  auto path = folder / "big.safetensors";
  constexpr Bytes kData = GiB(40);
  SyntheticFile()
      .header(fmt::format(R"({{"a":{{"dtype":"U8","shape":[{0}],"data_offsets":[0,{0}]}}}})", kData))
      .write_to(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + kData);  // a hole: no disk is used
  FaultySyscalls counted;

  Checkpoint checkpoint = Checkpoint::open(path);

  EXPECT_EQ(checkpoint.find("a")->size, kData);
  EXPECT_LT(counted.total_read(), 2000u);
}

TEST(Checkpoint, that_is_missing_is_bad_input) {
  EXPECT_THAT([] { Checkpoint::open("no/such.safetensors"); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("no/such.safetensors: no such file")));
}

TEST(Checkpoint, opens_paths_of_any_characters_and_symbolic_links) {
  TemporaryFolder folder;
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {5});
  std::filesystem::create_directory(folder / "мир 'x' \"y\" 映像");
  std::string longest;
  while (longest.size() + 3 + 12 <= 255) longest += "é̂";
  for (std::string name :
       {std::string("ü ñ.safetensors"), longest.substr(0, longest.size() / 2) + ".safetensors"}) {
    auto path = folder / "мир 'x' \"y\" 映像" / name;
    file.write_to(path);
    std::filesystem::create_symlink(path, folder / "link");

    EXPECT_EQ(names_of(Checkpoint::open(path)).size(), 1u);
    EXPECT_EQ(names_of(Checkpoint::open(folder / "link")).size(), 1u);
    EXPECT_EQ(names_of(Checkpoint::open(std::filesystem::relative(path))).size(), 1u);
    std::filesystem::remove(folder / "link");
  }
}

TEST(Folder, with_one_file_is_that_file) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {5}).write_to(folder / "diffusion_pytorch_model.fp16.safetensors");
  write_file(folder / "config.json", "{}");
  write_file(folder / "._diffusion_pytorch_model.safetensors", "what a Mac leaves on foreign disks");

  EXPECT_THAT(names_of(Checkpoint::open(folder.path())), ElementsAre("a"));
}

TEST(Folder, with_an_index_is_the_set_that_the_index_names) {
  for (const char* index :
       {"model.safetensors.index.json", "diffusion_pytorch_model.safetensors.index.json",
        "diffusion_pytorch_model.safetensors.index.fp16.json", "model.bf16.safetensors.index.json"}) {
    TemporaryFolder folder;
    write_set(folder);
    std::filesystem::rename(folder / "model.safetensors.index.json", folder / index);
    SyntheticFile().tensor("c", Dtype::U8, {5}).write_to(folder / "unrelated.safetensors");

    EXPECT_THAT(names_of(Checkpoint::open(folder.path())), ElementsAre("a", "b")) << index;
    EXPECT_THAT(names_of(Checkpoint::open(folder / index)), ElementsAre("a", "b")) << index;
  }
}

TEST(Folder, with_several_files_and_no_index_is_refused_listing_them) {
  TemporaryFolder folder;
  SyntheticFile().write_to(folder / "b.safetensors");
  SyntheticFile().write_to(folder / "a.safetensors");

  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(ErrorKind::bad_input, HasSubstr("a.safetensors, b.safetensors"), HasSubstr("index.json")));
}

TEST(Folder, with_several_indexes_is_refused_listing_them) {
  TemporaryFolder folder;
  write_set(folder);
  write_file(folder / "model.fp16.safetensors.index.json", "{}");

  EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("2 indexes")));
}

TEST(Folder, without_weights_is_refused_saying_what_to_give) {
  TemporaryFolder folder;
  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(ErrorKind::bad_input, HasSubstr("holds no safetensors file"), HasSubstr(".safetensors")));

  write_file(folder / "model_index.json", "{}");
  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(ErrorKind::bad_input, HasSubstr("holds no safetensors file"), HasSubstr("transformer/")));
}

TEST(ShardedSet, reads_each_tensor_from_its_shard) {
  TemporaryFolder folder;
  write_set(folder);
  Checkpoint checkpoint = Checkpoint::open(folder.path());

  EXPECT_EQ(checkpoint.shards().size(), 2u);
  EXPECT_EQ(checkpoint.shards()[checkpoint.find("b")->shard].path.filename(), "two.safetensors");
  EXPECT_EQ(bytes_of(checkpoint, "a"), SyntheticFile().tensor("a", Dtype::F32, {2}).data());
  EXPECT_EQ(bytes_of(checkpoint, "b"), SyntheticFile().tensor("b", Dtype::BF16, {3}).data());
  EXPECT_EQ(checkpoint.metadata().at("from"), "one");
  EXPECT_THAT(checkpoint.warnings(), IsEmpty());
}

TEST(ShardedSet, follows_symbolic_links_to_shards_elsewhere) {
  TemporaryFolder folder;
  write_set(folder);
  std::filesystem::create_directory(folder / "blobs");
  std::filesystem::rename(folder / "one.safetensors", folder / "blobs/0123abcd");
  std::filesystem::create_symlink("blobs/0123abcd", folder / "one.safetensors");

  EXPECT_THAT(names_of(Checkpoint::open(folder.path())), ElementsAre("a", "b"));
}

TEST(ShardedSet, lists_all_damaged_and_missing_shards_in_one_message) {
  TemporaryFolder folder;
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::F32, {100});
  SyntheticFile(file).cut_last(30).write_to(folder / "1.safetensors");
  file.write_to(folder / "2.safetensors");
  write_file(folder / "4.safetensors", "<html>");
  write_file(
      folder / "i.safetensors.index.json",
      index_text(
          {{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "3.safetensors"}, {"d", "4.safetensors"}}));
  std::size_t whole = file.content().size();

  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(
          ErrorKind::corrupt_file,
          AllOf(HasSubstr("i.safetensors.index.json: 3 of 4 shards cannot be used"),
                HasSubstr(fmt::format("1.safetensors: file has {} bytes, its header needs {}: 30 bytes",
                                      whole - 30, whole)),
                HasSubstr("3.safetensors: the shard is missing"), HasSubstr("4.safetensors: is a web page"),
                Not(HasSubstr("2.safetensors")))));
}

TEST(ShardedSet, lists_eight_damaged_shards_at_most) {
  TemporaryFolder folder;
  std::vector<std::pair<std::string, std::string>> map;
  for (int i = 10; i < 30; ++i) map.emplace_back(fmt::format("t{}", i), fmt::format("{}.safetensors", i));
  write_file(folder / "i.safetensors.index.json", index_text(map));

  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("20 of 20 shards"), HasSubstr("17.safetensors"),
                                              Not(HasSubstr("18.safetensors")), HasSubstr("and 12 more"))));
}

TEST(ShardedSet, without_a_named_shard_is_refused_naming_it) {
  TemporaryFolder folder;
  write_set(folder);
  std::filesystem::remove(folder / "two.safetensors");

  EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("two.safetensors: the shard is missing")));
}

TEST(ShardedSet, with_a_tensor_that_its_shard_lacks_is_refused_naming_both) {
  TemporaryFolder folder;
  write_set(folder);
  write_file(folder / "model.safetensors.index.json",
             index_text({{"a", "one.safetensors"}, {"b", "one.safetensors"}}));

  EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("'b' in one.safetensors")));
}

TEST(ShardedSet, warns_of_tensors_that_the_index_does_not_name_and_leaves_them_out) {
  TemporaryFolder folder;
  write_set(folder);
  SyntheticFile()
      .tensor("a", Dtype::F32, {2})
      .tensor("x", Dtype::F32, {2})
      .write_to(folder / "one.safetensors");
  Checkpoint checkpoint = Checkpoint::open(folder.path());

  EXPECT_THAT(names_of(checkpoint), ElementsAre("a", "b"));
  EXPECT_THAT(checkpoint.warnings(),
              ElementsAre(AllOf(HasSubstr("one.safetensors: ignored, as the index does not name"),
                                HasSubstr("'x'"))));
}

TEST(ShardedSet, takes_the_copy_that_the_index_names_and_warns_of_the_other) {
  TemporaryFolder folder;
  write_set(folder);
  SyntheticFile()
      .tensor("a", Dtype::F32, {2})
      .tensor("b", Dtype::BF16, {3})
      .write_to(folder / "one.safetensors");
  Checkpoint checkpoint = Checkpoint::open(folder.path());

  EXPECT_EQ(checkpoint.shards()[checkpoint.find("b")->shard].path.filename(), "two.safetensors");
  EXPECT_THAT(checkpoint.warnings(), ElementsAre(AllOf(HasSubstr("one.safetensors"), HasSubstr("'b'"))));
}

TEST(ShardedSet, with_another_tensor_of_the_same_name_is_refused) {
  TemporaryFolder folder;
  write_set(folder);
  SyntheticFile()
      .tensor("a", Dtype::F32, {2})
      .tensor("b", Dtype::BF16, {4})
      .write_to(folder / "one.safetensors");

  EXPECT_THAT(
      [&] { Checkpoint::open(folder.path()); },
      ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr("'b'"), HasSubstr("[4]"), HasSubstr("[3]"))));
}

TEST(Index, that_names_a_file_outside_its_folder_is_refused) {
  TemporaryFolder folder;
  write_set(folder);
  const std::string long_name(256, 'x');
  for (const char* name : {"../one.safetensors", "/etc/passwd", "sub/one.safetensors", "..", ".", "",
                           "a\\u0000b", "a\\u001b[2J", long_name.c_str()}) {
    write_file(folder / "model.safetensors.index.json", index_text({{"a", name}}));

    EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
                ThrowsError(ErrorKind::bad_input,
                            AllOf(HasSubstr("for tensor 'a'"), HasSubstr("no plain file name"))))
        << name;
  }
}

TEST(Index, that_is_none_is_refused_saying_why) {
  TemporaryFolder folder;
  auto refuses = [&](std::string_view text, const char* reason) {
    write_file(folder / "model.safetensors.index.json", text);
    EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
                ThrowsError(ErrorKind::corrupt_file, HasSubstr(reason)))
        << text;
  };

  refuses("[]", "is no JSON object");
  refuses("{}", "has no weight_map");
  refuses(R"({"metadata":{"weight_map":{"a":"b"}}})", "has no weight_map");
  refuses(R"({"weight_map":{}})", "names no tensor");
  refuses(R"({"weight_map":["a"]})", "no object of file names");
  refuses(R"({"weight_map":"a"})", "no object of file names");
  refuses(R"({"weight_map":{"a":1}})", "names no file for tensor 'a'");
  refuses(R"({"weight_map":{"a":{"b":"c"}}})", "names no file for tensor 'a'");
  refuses(R"({"weight_map":{"a":"x","a":"y"}})", "names tensor 'a' twice");
  refuses(R"({"weight_map":{"a":"x"},"weight_map":{"b":"x"}})", "has weight_map twice");
  refuses(R"({"weight_map":{"a":"x")", "index is not valid JSON");
  refuses("{\"weight_map\":{\"\xff\":\"x\"}}", "index is not valid UTF-8");
}

TEST(Index, that_is_a_git_lfs_pointer_is_told) {
  TemporaryFolder folder;
  write_file(folder / "model.safetensors.index.json", "version https://git-lfs.github.com/spec/v1\n");

  EXPECT_THAT([&] { Checkpoint::open(folder.path()); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("is a Git LFS pointer, not an index of shards")));
}

}  // namespace
}  // namespace sluice
