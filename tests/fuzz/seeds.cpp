// Writes what the fuzzers start from:   fuzz_seeds FOLDER   fills FOLDER/header and FOLDER/index.
#include "support/synthetic_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <string>

namespace sluice::test {
namespace {

void write_headers(const std::filesystem::path& folder) {
  int number = 0;
  auto write = [&](const SyntheticFile& file) { file.write_to(folder / fmt::format("{}", ++number)); };

  write(SyntheticFile());
  write(SyntheticFile().tensor("a", Dtype::F32, {}));
  write(SyntheticFile().tensor("a", Dtype::BF16, {2, 3}).tensor("b", Dtype::U8, {5}).pad_header(3));
  write(SyntheticFile().tensor("e", Dtype::F32, {0}).tensor("f", Dtype::F64, {1, 1, 1, 2}));
  write(SyntheticFile().metadata("format", "pt").metadata("config", R"({\"a\":[1,2.5e3,null]})"));
  write(SyntheticFile().tensor("\\u00e9\\ud83c\\udfac\\n", Dtype::I64, {1}));
  write(SyntheticFile().tensor("a", Dtype::F8_E4M3, {4}).with_field("a", "note", "[{\"x\":[true]}]"));
  write(SyntheticFile().tensor("a", Dtype::F32, {2}).tensor("b", Dtype::F32, {2}).at_offset("b", 4));
  write(SyntheticFile().tensor("a", Dtype::U8, {9}).with_field("a", "shape", "[18446744073709551615,0]"));
  write(SyntheticFile().tensor("a", Dtype::U8, {9}).header_length(~std::uint64_t{0}));

  SyntheticFile every;
  for (int i = 0; i < 22; ++i)
    every.tensor(std::string(dtype_name(static_cast<Dtype>(i))), static_cast<Dtype>(i), {8});
  write(every);
}

void write_indexes(const std::filesystem::path& folder) {
  int number = 0;
  auto write = [&](const std::string& text) { write_file(folder / fmt::format("{}", ++number), text); };

  write(index_text({{"a", "1.safetensors"}}));
  write(index_text({{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "1.safetensors"}}));
  write(index_text({{"a", "../1.safetensors"}, {"a", ".."}, {"", ""}}));
  write(R"({"weight_map":{"\u00e9":"\u001b"},"metadata":{"total_size":1e9,"x":[{}]}})");
  write(R"({"weight_map":[]})");
  write(R"({"weight_map":{"a":1}})");
}

}  // namespace
}  // namespace sluice::test

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: fuzz_seeds FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  for (const char* name : {"header", "index"}) std::filesystem::create_directories(folder / name);
  sluice::test::write_headers(folder / "header");
  sluice::test::write_indexes(folder / "index");
}
