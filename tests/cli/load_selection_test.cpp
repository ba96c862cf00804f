// `sluice load`: filters, ranks and transforms, by the file that it writes.
#include "bytes/format/writer.h"
#include "cli/world.h"

#include <cstring>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

class LoadedFile : public ::testing::Test {
 protected:
  // Writes `path` with the flags applied, and opens the result.
  Checkpoint load(const std::filesystem::path& path, const Arguments& flags) {
    const auto output = folder_ / "out.safetensors";
    EXPECT_THAT(run(with({"load", path, "-o", output, "--overwrite", "-q"}, flags)), Succeeds());
    return Checkpoint::open(output);
  }

  template <typename Value>
  static std::vector<Value> values(const Checkpoint& checkpoint, std::string_view name) {
    const TensorInfo* info = checkpoint.find(name);
    if (info == nullptr) return {};
    std::vector<Value> values(info->size / sizeof(Value));
    checkpoint.read(*info, std::as_writable_bytes(std::span(values)));
    return values;
  }

  template <typename Value>
  void add(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape, std::vector<Value> values) {
    std::vector<std::byte>& bytes = contents_.emplace_back(values.size() * sizeof(Value));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    specs_.push_back({name, dtype, std::move(shape)});
  }

  std::filesystem::path write(const std::map<std::string, std::string>& metadata = {}) {
    std::vector<bytes::TensorData> tensors;
    for (std::size_t i = 0; i < specs_.size(); ++i) tensors.push_back({specs_[i], contents_[i]});
    bytes::write_safetensors(folder_ / "in.safetensors", tensors, metadata);
    return folder_ / "in.safetensors";
  }

  TemporaryFolder folder_;
  std::vector<bytes::TensorSpec> specs_;
  std::vector<std::vector<std::byte>> contents_;
};

TEST_F(LoadedFile, is_the_same_with_its_metadata) {
  add<float>("a", Dtype::F32, {2, 2}, {1, 2, 3, 4});
  add<std::int64_t>("b", Dtype::I64, {}, {7});

  const Checkpoint loaded = load(write({{"format", "pt"}, {"config", "{\"x\": 1}"}}), {});

  EXPECT_THAT(values<float>(loaded, "a"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(values<std::int64_t>(loaded, "b"), ElementsAre(7));
  EXPECT_THAT(loaded.metadata(), UnorderedElementsAre(Pair("format", "pt"), Pair("config", "{\"x\": 1}")));
}

TEST_F(LoadedFile, is_one_of_several_shards) {
  TemporaryFolder folder;
  SyntheticFile().tensor("a", Dtype::U8, {10}).write_to(folder / "1.safetensors");
  SyntheticFile().tensor("b", Dtype::U8, {20}).write_to(folder / "2.safetensors");
  write_file(folder / "m.safetensors.index.json",
             index_text({{"a", "1.safetensors"}, {"b", "2.safetensors"}}));
  const Checkpoint shards = Checkpoint::open(folder.path());

  const Checkpoint loaded = load(folder.path(), {});

  EXPECT_EQ(loaded.shards().size(), 1u);
  for (const char* name : {"a", "b"})
    EXPECT_EQ(values<std::uint8_t>(loaded, name), values<std::uint8_t>(shards, name));
}

TEST_F(LoadedFile, has_the_dtypes_that_casts_give) {
  add<float>("w", Dtype::F32, {2}, {1, -2});
  add<std::uint16_t>("h", Dtype::F16, {1}, {0x3c00});  // 1
  add<std::int32_t>("i", Dtype::I32, {1}, {-5});
  const auto path = write();

  const Checkpoint by_dtype = load(path, {"--cast", "F32:bf16"});
  const Checkpoint by_name = load(path, {"--cast", "h=F32", "--cast", "i=I32:I64"});

  EXPECT_THAT(values<std::uint16_t>(by_dtype, "w"), ElementsAre(0x3f80, 0xc000));
  EXPECT_EQ(by_dtype.find("h")->dtype, Dtype::F16);
  EXPECT_THAT(values<float>(by_name, "h"), ElementsAre(1));
  EXPECT_THAT(values<std::int64_t>(by_name, "i"), ElementsAre(-5));
  EXPECT_THAT(run({"load", path, "--dry-run", "--cast", "BF16"}),
              Refuses(3, HasSubstr("'i' [1] is I32, which cannot be cast to BF16")));
}

TEST_F(LoadedFile, has_transposed_matrices) {
  add<std::uint8_t>("m", Dtype::U8, {2, 3}, {1, 2, 3, 4, 5, 6});

  const Checkpoint loaded = load(write(), {"--transpose", "m"});

  EXPECT_THAT(loaded.find("m")->shape, ElementsAre(3, 2));
  EXPECT_THAT(values<std::uint8_t>(loaded, "m"), ElementsAre(1, 4, 2, 5, 3, 6));
}

TEST_F(LoadedFile, has_quantized_values_with_their_scale) {
  add<float>("w", Dtype::F32, {2}, {448, -224});

  const Checkpoint loaded = load(write(), {"--quantize", "w"});

  EXPECT_EQ(loaded.find("w")->dtype, Dtype::F8_E4M3);
  EXPECT_THAT(values<std::uint8_t>(loaded, "w"), ElementsAre(0x7e, 0xf6));
  EXPECT_THAT(values<float>(loaded, "w_scale"), ElementsAre(1));
}

TEST_F(LoadedFile, has_names_by_rules_in_the_order_of_the_command_line) {
  add<std::uint8_t>("a.x", Dtype::U8, {1}, {1});
  add<std::uint8_t>("b.x", Dtype::U8, {1}, {2});
  const auto path = write();

  EXPECT_THAT(loaded_names({path, "--drop", "b.*", "--rename", "a.*=b.*"}), ElementsAre("b.x"));
  EXPECT_THAT(loaded_names({path, "--rename", "b.*=c.*", "--rename", "a.*=b.*", "--drop", "b.*"}),
              ElementsAre("c.x"));
  EXPECT_THAT(values<std::uint8_t>(load(path, {"--drop", "b.*", "--rename", "a.*=b.*"}), "b.x"),
              ElementsAre(1));
}

TEST_F(LoadedFile, has_what_the_filters_leave) {
  for (const char* name : {"model.visual.a", "model.layers.0.w", "model.layers.0.revision.w", "mtp.0.w",
                           "model.layers.0.input_scale", "head"}) {
    add<std::uint8_t>(name, Dtype::U8, {1}, {1});
  }
  const auto path = write();

  EXPECT_THAT(loaded_names({path, "--include", "head", "--include", "mtp.*"}),
              ElementsAre("head", "mtp.0.w"));
  EXPECT_THAT(loaded_names({path, "--exclude", "model.*", "--exclude", "mtp.*"}), ElementsAre("head"));
  EXPECT_THAT(loaded_names({path, "--skip-vision", "--skip-mtp", "--skip-input-scales"}),
              ElementsAre("head", "model.layers.0.revision.w", "model.layers.0.w"));
  EXPECT_EQ(loaded_names({path}).size(), 6u);
}

TEST_F(LoadedFile, is_a_rank_s_share) {
  add<std::uint8_t>("rows", Dtype::U8, {4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  add<std::uint8_t>("columns", Dtype::U8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (int i = 0; i < 4; ++i) add<std::uint8_t>(fmt::format("experts.{}.w", i), Dtype::U8, {1}, {9});

  const Checkpoint loaded = load(write(), {"--rank", "1", "--world", "2", "--expert-parallel", "--slice-rows",
                                           "rows", "--slice-columns", "columns"});

  EXPECT_THAT(values<std::uint8_t>(loaded, "rows"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(values<std::uint8_t>(loaded, "columns"), ElementsAre(3, 4, 7, 8));
  EXPECT_EQ(loaded.find("experts.1.w"), nullptr);
  EXPECT_THAT(values<std::uint8_t>(loaded, "experts.2.w"), ElementsAre(9));
}

TEST_F(LoadedFile, is_described_by_a_dry_run) {
  add<float>("w", Dtype::F32, {4, 8}, std::vector<float>(32));

  const json result = result_of({"load", write(), "--dry-run", "--cast", "BF16", "--transpose", "w"});
  const Outcome text = run({"load", folder_ / "in.safetensors", "--dry-run"});

  EXPECT_EQ(result.at("dry_run"), true);
  EXPECT_EQ(result.at("tensors"),
            json::array({{{"name", "w"}, {"dtype", "BF16"}, {"shape", {8, 4}}, {"bytes", 64}}}));
  EXPECT_EQ(result.at("bytes"), 128);
  EXPECT_EQ(result.at("target_bytes"), 64);
  EXPECT_THAT(text.out, HasSubstr("F32     [4, 8]"));
  EXPECT_THAT(text.out, HasSubstr("1 tensor, 128 B; reads 128 B; needs "));
}

}  // namespace
}  // namespace sluice::test
