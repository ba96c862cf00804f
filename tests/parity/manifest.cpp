// The reading of manifest.json, see case.h.
#include "parity/case.h"

#include <fmt/format.h>

#include <fstream>

namespace sluice::parity {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;

const json& member(const json& object, const char* key, json::value_t type) {
  auto found = object.find(key);
  if (found == object.end()) throw MalformedCase(fmt::format("manifest: '{}' is missing", key));
  const bool number = type == json::value_t::number_float && found->is_number();
  if (found->type() != type && !number)
    throw MalformedCase(
        fmt::format("manifest: '{}' is {}, not {}", key, found->type_name(), json(type).type_name()));
  return *found;
}

std::string text_of(const json& object, const char* key) {
  return member(object, key, json::value_t::string).get<std::string>();
}

const json& object_of(const json& object, const char* key) {
  return member(object, key, json::value_t::object);
}

TensorEntry read_entry(const std::string& name, const json& entry) {
  if (!entry.is_object()) throw MalformedCase(fmt::format("manifest: tensor '{}' is no object", name));
  TensorEntry read{.tensor = text_of(entry, "tensor"), .dtype = text_of(entry, "dtype")};
  for (const json& extent : member(entry, "shape", json::value_t::array)) {
    if (!extent.is_number_unsigned())
      throw MalformedCase(fmt::format("manifest: tensor '{}' has the extent {}", name, extent.dump()));
    read.shape.push_back(extent.get<std::int64_t>());
  }
  return read;
}

double tolerance_of(const std::string& name, const json& entry, const char* key) {
  const auto value = member(entry, key, json::value_t::number_float).get<double>();
  if (!(value >= 0.0)) throw MalformedCase(fmt::format("manifest: output '{}' has {} {}", name, key, value));
  return value;
}

std::filesystem::path existing(const std::filesystem::path& folder, const std::string& file) {
  std::filesystem::path path = folder / file;
  if (!std::filesystem::is_regular_file(path))
    throw MalformedCase(fmt::format("manifest: there is no file '{}'", file));
  return path;
}

void read_weights(Manifest& manifest, const json& document) {
  auto found = document.find("weights");
  if (found == document.end()) throw MalformedCase("manifest: 'weights' is missing");
  if (found->is_null()) return;
  if (found->is_string()) {
    manifest.weights.emplace("", existing(manifest.folder, found->get<std::string>()));
    return;
  }
  if (!found->is_object()) throw MalformedCase("manifest: 'weights' is no file, object or null");
  for (const auto& [module, file] : found->items()) {
    if (!file.is_string())
      throw MalformedCase(fmt::format("manifest: weights of '{}' are no file name", module));
    manifest.weights.emplace(module, existing(manifest.folder, file.get<std::string>()));
  }
}

void read_tensors_of(Manifest& manifest, const json& document) {
  for (const auto& [name, entry] : object_of(document, "inputs").items())
    manifest.inputs.emplace(name, read_entry(name, entry));
  for (const auto& [name, entry] : object_of(document, "outputs").items()) {
    TensorEntry output = read_entry(name, entry);
    output.tolerance = {.atol = tolerance_of(name, entry, "atol"), .rtol = tolerance_of(name, entry, "rtol")};
    manifest.outputs.emplace(name, std::move(output));
  }
}

void check_place(const Manifest& manifest, const json& document) {
  const std::string from_folder =
      (manifest.folder.parent_path().filename() / manifest.folder.filename()).generic_string();
  for (const std::string& named : {text_of(document, "name"), manifest.full_name()}) {
    if (named != from_folder)
      throw MalformedCase(fmt::format("manifest: names itself '{}', but lies in '{}'", named, from_folder));
  }
}

}  // namespace

Manifest read_manifest(const std::filesystem::path& path) {
  std::ifstream file(path);
  const json document = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) throw MalformedCase("manifest: not a JSON object");
  if (document.value("format", json()) != kFormat)
    throw MalformedCase(
        fmt::format("manifest: format is {}, not {}", document.value("format", json()).dump(), kFormat));
  Manifest manifest{.folder = path.parent_path(),
                    .component = text_of(document, "component"),
                    .name = text_of(document, "case"),
                    .config = object_of(document, "config"),
                    .params = object_of(document, "params")};
  check_place(manifest, document);
  manifest.io = existing(manifest.folder, text_of(document, "io"));
  read_weights(manifest, document);
  for (const json& name : member(document, "files", json::value_t::array)) {
    if (!name.is_string()) throw MalformedCase("manifest: 'files' holds what is no name");
    manifest.files.push_back(name.get<std::string>());
    existing(manifest.folder, manifest.files.back());
  }
  read_tensors_of(manifest, document);
  return manifest;
}

}  // namespace sluice::parity
