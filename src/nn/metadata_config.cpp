#include "nn/metadata_config.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::nn {

nlohmann::json metadata_config(const Checkpoint& checkpoint) {
  const std::string where = checkpoint.path().string();
  const auto found = checkpoint.metadata().find("config");
  if (found == checkpoint.metadata().end()) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: the metadata has no 'config', so the model's sizes are unknown", where),
                "use the file as published; a file re-saved by other tools may have lost its metadata");
  }
  nlohmann::json config = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: 'config' in the metadata is no JSON object", where),
                "use the file as published");
  }
  return config;
}

}  // namespace sluice::nn
