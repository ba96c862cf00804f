#pragma once
// One parity case: a folder with manifest.json in the format of tests/fixtures/README.md.  Manifest says what
// is in the file and is checked to the letter; Case adds the tensors.  Nothing about a case is known here
// beforehand: widths, counts and tolerances come from the manifest alone.

#include "support/fixture.h"

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::parity {

// A manifest, or a tensor it names, that breaks the format: a failure of the case.
struct MalformedCase : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TensorEntry {
  std::string tensor;  // key in io.safetensors
  std::string dtype;   // "float32", as torch names it
  std::vector<std::int64_t> shape;
  test::Tolerance tolerance;  // of outputs
};

struct Manifest {
  std::filesystem::path folder;
  std::string component;
  std::string name;  // of the case within the component
  nlohmann::json config;
  nlohmann::json params;
  std::filesystem::path io;
  std::map<std::string, std::filesystem::path, std::less<>> weights;  // by module; a single file under ""
  std::vector<std::string> files;
  std::map<std::string, TensorEntry, std::less<>> inputs;
  std::map<std::string, TensorEntry, std::less<>> outputs;

  std::string full_name() const { return component + "/" + name; }
};

// Throws MalformedCase for anything that is missing, of another type, or not there as a file.
Manifest read_manifest(const std::filesystem::path& path);

class Case {
 public:
  // Reads every tensor; each must have the dtype and shape that the manifest gives it.
  explicit Case(Manifest manifest);

  const Manifest& manifest() const { return manifest_; }
  const std::string& name() const { return manifest_.name; }
  const nlohmann::json& config() const { return manifest_.config; }

  // The same with the values of the object `key` among the params over the others: a part of a case.
  Case part(std::string_view key) const;

  bool has_param(std::string_view key) const;  // present and not null
  // MalformedCase if the parameter is missing or of another type.
  template <typename T>
  T param(std::string_view key) const {
    return convert<T>(manifest_.params, key);
  }
  template <typename T>
  T param_or(std::string_view key, T fallback) const {
    return has_param(key) ? param<T>(key) : fallback;
  }
  template <typename T>
  T config_value(std::string_view key) const {
    return convert<T>(manifest_.config, key);
  }

  const at::Tensor& input(std::string_view name) const;     // MalformedCase if there is none
  at::Tensor optional_input(std::string_view name) const;   // undefined if there is none
  const at::Tensor& wanted(std::string_view name) const;    // an output as the reference gave it
  std::filesystem::path file(std::string_view name) const;  // one of manifest "files", or beside it
  std::filesystem::path weights(std::string_view module = {}) const;

 private:
  template <typename T>
  T convert(const nlohmann::json& object, std::string_view key) const {
    try {
      return object.at(std::string(key)).get<T>();
    } catch (const nlohmann::json::exception& problem) {
      throw MalformedCase("manifest: " + std::string(key) + ": " + problem.what());
    }
  }

  Manifest manifest_;
  test::TensorMap inputs_;
  test::TensorMap outputs_;
};

}  // namespace sluice::parity
