#pragma once
// What tests of commands that read checkpoints share.

#include "support/program.h"
#include "support/synthetic_file.h"
#include "support/wide_text_encoder.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace sluice::test {

// The one JSON object of a run that ends well and says nothing else.
inline nlohmann::json result_of(const Arguments& arguments) {
  const Outcome outcome = run(with(arguments, {"--json", "--quiet"}));
  EXPECT_THAT(outcome, Succeeds());
  return nlohmann::json::parse(outcome.out);
}

// Names of a list of objects.
inline std::vector<std::string> names_in(const nlohmann::json& tensors) {
  std::vector<std::string> names;
  for (const nlohmann::json& tensor : tensors) names.push_back(tensor.at("name"));
  return names;
}

// What a load would give.
inline std::vector<std::string> loaded_names(const Arguments& arguments) {
  std::vector<std::string> names = names_in(result_of(with({"load", "--dry-run"}, arguments)).at("tensors"));
  std::ranges::sort(names);
  return names;
}

// A file of that many GiB which is all hole: nobody has time to read a thousand of them.
inline void write_huge(const std::filesystem::path& path, std::int64_t gib) {
  write_sparse(path, {{.name = "x", .dtype = Dtype::U8, .shape = {gib, 1 << 30}}});
}

}  // namespace sluice::test
