// safetensors/reading: files to accept and files to refuse, cases.json says which.
#include "parity/file_cases.h"

#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

namespace sluice::parity {
namespace {

using nlohmann::json;

// The names of the file's tensors, each read whole.
std::vector<std::string> read_whole(const std::filesystem::path& path) {
  const Checkpoint checkpoint = Checkpoint::open(path);
  std::vector<std::string> names;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    std::vector<std::byte> bytes(tensor.size);
    checkpoint.read(tensor, bytes);
    names.push_back(tensor.name);
  }
  return names;
}

void expect_accepted(Results& results, const std::string& file, const std::filesystem::path& path,
                     const json& reference_says) {
  try {
    std::vector<std::string> names = read_whole(path);
    const bool same = !reference_says.is_array() || json(names) == reference_says;
    results.claim("reads " + file, same,
                  "tensors are " + json(names).dump() + ", not " + reference_says.dump());
  } catch (const std::exception& problem) {
    results.claim("reads " + file, false, problem.what());
  }
}

// Refused means: with an Error about the file that names it, never with anything else.
void expect_refused(Results& results, const std::string& file, const std::filesystem::path& path) {
  const std::string what = "refuses " + file;
  try {
    read_whole(path);
    results.claim(what, false, "was accepted");
  } catch (const Error& error) {
    const bool about_file = error.kind() == ErrorKind::corrupt_file || error.kind() == ErrorKind::bad_input;
    const bool named = std::string(error.what()).find(file) != std::string::npos;
    results.claim(what, about_file && named,
                  fmt::format("refused as {}: {}", error_kind_info(error.kind()).name, error.what()));
  } catch (const std::exception& problem) {
    results.claim(what, false, problem.what());
  }
}

}  // namespace

Results run_safetensors_reading(const Case& parity_case) {
  std::ifstream stream(parity_case.file("cases.json"));
  const json cases = json::parse(stream);
  Results results;
  for (const json& entry : cases.at("files")) {
    const auto file = entry.at("file").get<std::string>();
    const auto path = parity_case.file(file);
    if (entry.at("expect") == "accept") {
      expect_accepted(results, file, path, entry.at("reference_says"));
    } else {
      expect_refused(results, file, path);
    }
  }
  return results;
}

}  // namespace sluice::parity
