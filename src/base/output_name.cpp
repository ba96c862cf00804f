#include "base/output_name.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice {

namespace fs = std::filesystem;

fs::path full_name(const fs::path& path) {
  return fs::weakly_canonical(fs::absolute(path)).lexically_normal();
}

fs::path without_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

bool lies_in(const fs::path& path, const fs::path& folder) {
  for (fs::path at = path; at.has_relative_path(); at = at.parent_path()) {
    if (at == folder) return true;
  }
  return false;
}

void refuse_input_as_output(const fs::path& output, const std::vector<fs::path>& inputs) {
  const fs::path name = full_name(output);
  const bool of_a_model = name.extension() == ".safetensors" || name.extension() == ".json";
  for (const fs::path& input : inputs) {
    if (input.empty()) continue;
    const fs::path taken = full_name(input);
    if (name != taken && !(of_a_model && fs::exists(name) && lies_in(name, taken))) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{}: is an input of this run, or belongs to one", output.string()),
                "give the output another name");
  }
}

}  // namespace sluice
