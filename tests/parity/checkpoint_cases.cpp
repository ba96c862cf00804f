// checkpoint/single_file: names, dtypes, shapes, bytes and configs of the published layout and of the
// diffusers folder.
#include "models/ltx2/files/model_files.h"
#include "parity/file_cases.h"
#include "parity/sha256.h"
#include "support/fixture.h"
#include "weights/dtype.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <set>
#include <string>
#include <vector>

namespace sluice::parity {
namespace {

using ltx2::ComponentKind;
using ltx2::ModelFiles;
using nlohmann::json;

ComponentKind kind_of(const std::string& name) {
  for (ComponentKind kind : ltx2::kComponentKinds) {
    if (to_string(kind) == name) return kind;
  }
  throw MalformedCase(fmt::format("expected.json: unknown component '{}'", name));
}

std::vector<std::byte> bytes_of(const weights::ComponentTable& table, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.size);
  table.checkpoint.read(tensor, bytes);
  return bytes;
}

at::Tensor values_of(const weights::ComponentTable& table, const TensorInfo& tensor) {
  at::Tensor values = at::empty(tensor.shape, weights::to_scalar_type(tensor.dtype));
  table.checkpoint.read(tensor, {static_cast<std::byte*>(values.data_ptr()), tensor.size});
  return values;
}

// What is wrong with a row of expected.json; empty if nothing is.
std::string check_row(const ModelFiles& files, const json& row) {
  const weights::ComponentTable& table = files.component(kind_of(row.at("component"))).table;
  const auto found = table.tensors.find(row.at("diffusers").get<std::string>());
  if (found == table.tensors.end())
    return fmt::format("no tensor '{}'", row.at("diffusers").get<std::string>());
  const TensorInfo& tensor = found->second;
  if (row.at("single_file") != tensor.name) return fmt::format("is '{}' in the file", tensor.name);
  const Dtype dtype = row.at("dtype") == "float32" ? Dtype::F32 : Dtype::BF16;
  if (tensor.dtype != dtype || row.at("shape") != json(tensor.shape))
    return fmt::format("'{}' is {} {}", tensor.name, dtype_name(tensor.dtype), format_shape(tensor.shape));
  if (row.at("sha256") != sha256(bytes_of(table, tensor)))
    return fmt::format("'{}' has other bytes", tensor.name);
  return {};
}

void check_tensors(Results& results, const ModelFiles& files, const json& expected) {
  std::vector<std::string> wrong;
  for (const json& row : expected.at("tensors")) {
    if (std::string problem = check_row(files, row); !problem.empty()) wrong.push_back(std::move(problem));
  }
  results.claim(fmt::format("{} tensors of the single file", expected.at("tensors").size()), wrong.empty(),
                wrong.empty() ? "" : fmt::format("{} wrong, the first: {}", wrong.size(), wrong.front()));
}

// Nothing is in the tables but what the list names and what it says is ignored.
void check_leftovers(Results& results, const ModelFiles& files, const json& expected) {
  auto known = expected.at("ignored").get<std::set<std::string>>();
  for (const json& row : expected.at("tensors")) known.insert(row.at("single_file").get<std::string>());
  std::vector<std::string> unknown;
  for (ComponentKind kind : ltx2::kComponentKinds) {
    for (const auto& [name, tensor] : files.component(kind).table.tensors) {
      if (!known.contains(tensor.name)) unknown.push_back(tensor.name);
    }
  }
  results.claim("no other tensors", unknown.empty(), unknown.empty() ? "" : unknown.front());
}

// The published metadata asks for a clamp behind the vocoder's first generator; the module of diffusers that
// these weights come from was built without.
bool differs_by_design(ComponentKind kind, const std::string& key) {
  return kind == ComponentKind::vocoder && key == "final_act_fn";
}

void check_config(Results& results, const ModelFiles& files, const std::string& component,
                  const json& config) {
  const ComponentKind kind = kind_of(component);
  const json& got = files.component(kind).config;
  std::string problem;
  for (const auto& [key, value] : config.items()) {
    if (!got.contains(key) || differs_by_design(kind, key) || got.at(key) == value) continue;
    problem += fmt::format("{} is {}, not {}; ", key, got.at(key).dump(), value.dump());
  }
  results.claim(component + " config", problem.empty(), problem);
}

// Tensors of the folder equal those of the single file, up to the folder's narrower dtype.
void check_folder(Results& results, const ModelFiles& single, const ModelFiles& folder,
                  const json& expected) {
  std::vector<std::string> wrong;
  for (const json& row : expected.at("tensors")) {
    const ComponentKind kind = kind_of(row.at("component"));
    const auto name = row.at("diffusers").get<std::string>();
    const auto& single_table = single.component(kind).table;
    const auto& folder_table = folder.component(kind).table;
    const auto one = single_table.tensors.find(name), other = folder_table.tensors.find(name);
    if (one == single_table.tensors.end() || other == folder_table.tensors.end()) {
      wrong.push_back(name + " is missing");
      continue;
    }
    const at::Tensor want = values_of(folder_table, other->second);
    if (!at::equal(values_of(single_table, one->second).to(want.scalar_type()), want)) wrong.push_back(name);
  }
  results.claim("folder equals single file", wrong.empty(),
                wrong.empty() ? "" : fmt::format("{} differ, the first: {}", wrong.size(), wrong.front()));
}

}  // namespace

Results run_single_file(const Case& parity_case) {
  std::ifstream stream(parity_case.file("expected.json"));
  const json expected = json::parse(stream);
  const ModelFiles single = ModelFiles::open(parity_case.file(parity_case.param<std::string>("checkpoint")));
  const ModelFiles folder = ModelFiles::open(parity_case.file(parity_case.param<std::string>("folder")));
  Results results;
  check_tensors(results, single, expected);
  check_leftovers(results, single, expected);
  check_folder(results, single, folder, expected);
  for (const auto& [component, entry] : expected.at("components").items())
    check_config(results, single, component, entry.at("config"));
  return results;
}

}  // namespace sluice::parity
