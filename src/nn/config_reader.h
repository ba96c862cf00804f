#pragma once
// Reads a component's configuration strictly: a key of the wrong type, a missing required key and a value
// that this program does not implement are each an Error(bad_input) naming component, key and value.

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::nn {

class ConfigReader {
 public:
  // `where` names the source in messages: "model.safetensors: transformer".  The object must outlive the
  // reader.
  ConfigReader(const nlohmann::json& object, std::string where);

  bool has(std::string_view key) const;  // present and not null

  template <typename T>
  T required(std::string_view key) const {
    if (!has(key)) throw missing(key);
    return convert<T>(key);
  }

  template <typename T>
  T value_or(std::string_view key, T fallback) const {
    return has(key) ? convert<T>(key) : std::move(fallback);
  }

  // A positive integer, as sizes are; a number with a fraction is not cut off.
  std::int64_t count(std::string_view key, std::optional<std::int64_t> fallback = std::nullopt) const;

  // The key is absent, null or equal to `expected`; anything else is not implemented.
  template <typename T>
  void only(std::string_view key, const T& expected) const {
    if (has(key) && !(convert<T>(key) == expected)) throw unsupported(key);
  }

  Error unsupported(
      std::string_view key) const;  // "…: 'qk_norm' is \"layer_norm\", which is not implemented"
  const std::string& where() const { return where_; }
  const nlohmann::json& at(std::string_view key) const;

 private:
  template <typename T>
  T convert(std::string_view key) const {
    try {
      const nlohmann::json& value = at(key);
      // nlohmann converts between numbers and booleans without a word.
      if (std::is_same_v<T, bool> != value.is_boolean()) throw wrong_type(key);
      return value.get<T>();
    } catch (const nlohmann::json::exception&) {
      throw wrong_type(key);
    }
  }
  Error missing(std::string_view key) const;
  Error wrong_type(std::string_view key) const;

  const nlohmann::json* object_;
  std::string where_;
};

}  // namespace sluice::nn
