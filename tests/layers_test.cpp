// The include graph against the table of layers in docs/architecture.md: a file includes headers of its own
// layer and of those its layer may use, directly or through them, and nothing else of the project.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kAten = "ATen";  // what <ATen/…>, <torch/…>, <c10/…> and src/aten belong to

// The rows of the table, for a tree without docs: folder, owns, may use.
constexpr const char* kTable = R"(
| `src/base` | errors, units, logging, files | std only |
| `src/bytes` | safetensors | base. **No LibTorch.** |
| `src/weights` | names to tensors, residency | bytes, ATen |
| `src/kernels` | CPU kernels | base, ATen |
| `src/nn` | layers | weights, kernels |
| `src/models` | one folder a model family | nn |
| `src/sampling` | schedules, guidance, noise | ATen |
| `src/media` | encode, decode | base |
| `src/pipeline` | one generation | everything above |
| `src/cli` | the program | bytes |
| `src/compute`, `src/server` | fronts | pipeline, cli |
)";

// Headers of include/sluice by the layer that implements them.
const std::map<std::string, std::string> kPublicHeaders = {
    {"error.h", "base"},   {"units.h", "base"},       {"progress.h", "base"},      {"memory.h", "base"},
    {"version.h", "base"}, {"checkpoint.h", "bytes"}, {"read_options.h", "bytes"}, {"transforms.h", "bytes"},
    {"load.h", "bytes"},   {"slab.h", "bytes"},       {"sinks.h", "bytes"},        {"sluice.h", "pipeline"},
    {"quantize.h", "pipeline"}};

struct SourceFile {
  std::string path;  // from the root: "src/bytes/header.cpp"
  std::string text;
};

using Layers = std::map<std::string, std::set<std::string>>;  // layer -> all it may see, itself included

std::vector<std::string> matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1]);
  return found;
}

// Rows whose first column names folders of src/.
Layers read_layers(const std::string& document) {
  static const std::regex row(R"(\|((?: *`src/\w+` *,?)+) *\|[^|\n]*\|([^|\n]*)\|)");
  static const std::regex folder("`src/(\\w+)`"), word("(\\w+)");
  Layers layers;
  std::set<std::string> above;
  for (auto it = std::sregex_iterator(document.begin(), document.end(), row); it != std::sregex_iterator();
       ++it) {
    const std::string may_use = (*it)[2];
    const auto words = matches(may_use.substr(0, may_use.find('.')), word);  // what follows a stop is comment
    const auto names = matches((*it)[1], folder);
    for (const std::string& name : names) {
      std::set<std::string>& seen = layers[name];
      seen = {name, "base"};  // errors and units are everybody's
      for (const std::string& used : words) {
        if (used == "everything") seen.insert(above.begin(), above.end());
        if (used == kAten) seen.insert(kAten);
        if (auto lower = layers.find(used); lower != layers.end())
          seen.insert(lower->second.begin(), lower->second.end());
      }
    }
    for (const std::string& name : names) above.insert(layers[name].begin(), layers[name].end());
  }
  layers["aten"] = {"aten", "base", kAten};  // the shared precompiled header and what reports its version
  for (auto& [name, seen] : layers) {
    if (seen.contains(kAten)) seen.insert("aten");
  }
  return layers;
}

std::string first_folder(const std::string& path) {
  return path.substr(0, path.find('/'));
}

// The layer of a path from the root or as an include names it; "" for a system or library header.
std::string layer_of(std::string path) {
  if (path.starts_with("src/")) path = path.substr(4);
  if (path.starts_with("include/")) path = path.substr(8);
  if (path.starts_with("sluice/")) {
    auto found = kPublicHeaders.find(path.substr(7));
    return found == kPublicHeaders.end() ? "unknown" : found->second;
  }
  const std::string folder = first_folder(path);
  return folder == "ATen" || folder == "torch" || folder == "c10" ? kAten : folder;
}

// One line for each include that the table forbids, sorted, with the names of both files.
std::vector<std::string> violations(const Layers& layers, const std::vector<SourceFile>& files) {
  static const std::regex project(R"re((?:^|\n)\s*#\s*include\s*"([^"]+)")re");
  static const std::regex angle(R"((?:^|\n)\s*#\s*include\s*<((?:sluice|ATen|torch|c10)/[^>]+)>)");
  std::vector<std::string> found;
  for (const SourceFile& file : files) {
    const std::string own = layer_of(file.path);
    auto layer = layers.find(own);
    if (layer == layers.end()) {
      found.push_back(file.path + " belongs to no layer of the table");
      continue;
    }
    auto includes = matches(file.text, project);
    for (const std::string& header : matches(file.text, angle)) includes.push_back(header);
    for (const std::string& header : includes) {
      const std::string other = layer_of(header);
      if (!layer->second.contains(other))
        found.push_back(file.path + " includes " + header + ": " + own + " may not use " + other);
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<SourceFile> source_files() {
  const fs::path root = SLUICE_SOURCE_DIR;
  std::vector<SourceFile> files;
  for (const char* folder : {"src", "include"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto extension = entry.path().extension();
      if (extension != ".h" && extension != ".cpp") continue;
      files.push_back({fs::relative(entry.path(), root).generic_string(), content(entry.path())});
    }
  }
  return files;
}

std::string table() {
  const fs::path document = fs::path(SLUICE_SOURCE_DIR) / "docs/architecture.md";
  return fs::exists(document) ? content(document) : kTable;
}

TEST(Layers, include_only_what_the_architecture_lets_them) {
  const Layers layers = read_layers(table());
  const auto files = source_files();

  ASSERT_GT(files.size(), 100u);
  EXPECT_THAT(violations(layers, files), IsEmpty());
}

TEST(Layers, are_all_in_the_architecture) {
  const Layers layers = read_layers(table());

  for (const auto& [name, seen] : read_layers(kTable)) EXPECT_EQ(layers.count(name), 1u) << name;
}

TEST(Layers, an_include_of_a_lower_layer_is_named_with_both_files) {
  auto found = violations(read_layers(kTable), {{"src/bytes/header.cpp", "#include \"weights/dtype.h\"\n"}});

  EXPECT_THAT(found, ElementsAre(HasSubstr("src/bytes/header.cpp includes weights/dtype.h")));
}

TEST(Layers, base_bytes_media_and_cli_do_not_see_libtorch) {
  for (const char* path :
       {"src/base/a.h", "src/bytes/a.h", "src/media/a.cpp", "src/cli/a.cpp", "include/sluice/checkpoint.h"}) {
    for (const char* text : {"#include <ATen/ATen.h>", "#include <c10/util/Half.h>",
                             "#include \"aten/version.h\"", "// why\n#  include <torch/all.h>"}) {
      EXPECT_EQ(violations(read_layers(kTable), {{path, text}}).size(), 1u) << path << ": " << text;
    }
  }
}

TEST(Layers, what_a_used_layer_uses_may_be_used) {
  const std::vector<SourceFile> files = {
      {"src/models/ltx2/text/gemma.cpp", "#include \"weights/component.h\"\n#include <ATen/ATen.h>\n"},
      {"src/compute/main.cpp", "#include <sluice/checkpoint.h>\n#include \"aten/version.h\"\n"},
      {"src/sampling/noise.cpp", "#include <sluice/error.h>\n"}};

  EXPECT_THAT(violations(read_layers(kTable), files), IsEmpty());
}

TEST(Layers, a_side_layer_is_not_seen_through) {
  const std::vector<SourceFile> files = {{"src/sampling/noise.cpp", "#include \"nn/layers.h\"\n"},
                                         {"src/models/a.cpp", "#include \"media/probe.h\"\n"},
                                         {"src/nn/a.h", "#include \"support/fixture.h\"\n"}};

  EXPECT_EQ(violations(read_layers(kTable), files).size(), 3u);
}

}  // namespace
