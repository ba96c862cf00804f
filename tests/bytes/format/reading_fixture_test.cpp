// Every file of tests/fixtures/safetensors/reading gets the answer that its cases.json gives, for the reason
// it gives.

#include "support/throws_error.h"

#include <sluice/checkpoint.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace sluice {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(SLUICE_SOURCE_DIR) / "tests/fixtures/safetensors/reading";

nlohmann::json cases() {
  std::ifstream file(kFolder / "cases.json");
  return nlohmann::json::parse(file).at("files");
}

// What a message of each group of reasons says.
const std::map<std::string, std::string> kGroupSays = {
    {"truncated", "are missing|empty file"},
    {"header_too_large", "header length .* exceeds the format's limit"},
    {"header_syntax",
     "header (is not valid|does not begin|is nested|has bytes after)|entry of tensor 'a' is a list"},
    {"duplicate", "appears twice"},
    {"header_field", "(tensor '.*' has |the entry of tensor|__metadata__)"},
    {"dtype", "unknown dtype 'F31'"},
    {"size_overflow", "no size that 64 bits can count"},
    {"offsets", "overlap|belong to no tensor|begins at byte|data_offsets .* hold"},
    {"not_safetensors", "is a .*, not a safetensors file"},
    {"name", "holds a NUL"},
};

TEST(ReadingFixture, files_to_accept_open_with_the_tensors_of_the_reference) {
  int count = 0;
  for (const auto& entry : cases()) {
    if (entry.at("expect") != "accept") continue;
    ++count;
    Checkpoint checkpoint = Checkpoint::open(kFolder / entry.at("file").get<std::string>());

    std::vector<std::string> names;
    for (const TensorInfo& tensor : checkpoint.tensors()) names.push_back(tensor.name);
    EXPECT_THAT(names, ::testing::UnorderedElementsAreArray(
                           entry.at("reference_says").get<std::vector<std::string>>()))
        << entry.at("file");
  }
  EXPECT_GT(count, 10);
}

TEST(ReadingFixture, files_to_refuse_are_refused_for_the_reason_given) {
  int count = 0;
  for (const auto& entry : cases()) {
    if (entry.at("expect") != "refuse") continue;
    ++count;
    auto file = entry.at("file").get<std::string>();
    try {
      Checkpoint::open(kFolder / file);
      ADD_FAILURE() << file << " was accepted: " << entry.at("why");
    } catch (const Error& error) {
      EXPECT_EQ(error_kind_info(error.kind()).exit_code, 3) << file;
      EXPECT_THAT(error.what(), ::testing::HasSubstr(file));
      EXPECT_THAT(error.what(),
                  ::testing::ContainsRegex(kGroupSays.at(entry.at("error").get<std::string>())));
    }
  }
  EXPECT_GT(count, 30);
}

}  // namespace
}  // namespace sluice
