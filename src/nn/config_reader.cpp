#include "nn/config_reader.h"

namespace sluice::nn {

ConfigReader::ConfigReader(const nlohmann::json& object, std::string where)
    : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: the config is no JSON object", where_),
                "the file is damaged or of another kind: fetch it again");
  }
}

bool ConfigReader::has(std::string_view key) const {
  auto found = object_->find(key);
  return found != object_->end() && !found->is_null();
}

const nlohmann::json& ConfigReader::at(std::string_view key) const {
  auto found = object_->find(key);
  if (found == object_->end()) throw missing(key);
  return *found;
}

std::int64_t ConfigReader::count(std::string_view key, std::optional<std::int64_t> fallback) const {
  if (!has(key)) {
    if (!fallback) throw missing(key);
    return *fallback;
  }
  const nlohmann::json& value = at(key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 1) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' is {}, not a positive integer", where_, key, value.dump()),
                "use the published config");
  }
  return value.get<std::int64_t>();
}

Error ConfigReader::missing(std::string_view key) const {
  return Error(ErrorKind::bad_input, fmt::format("{}: the config has no '{}'", where_, key),
               "the file is of another model or incomplete: use the published config");
}

Error ConfigReader::wrong_type(std::string_view key) const {
  return Error(ErrorKind::bad_input,
               fmt::format("{}: '{}' is {}, of another type than expected", where_, key, at(key).dump()),
               "use the published config");
}

Error ConfigReader::unsupported(std::string_view key) const {
  return Error(ErrorKind::bad_input,
               fmt::format("{}: '{}' is {}, which is not implemented", where_, key, at(key).dump()),
               "use a checkpoint of the LTX-2 family in its published form");
}

}  // namespace sluice::nn
