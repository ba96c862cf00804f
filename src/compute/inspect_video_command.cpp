#include "compute/commands.h"

#include "cli/metadata_line.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

using nlohmann::json;

std::string as_text(const json& video) {
  std::string text;
  for (const json& stream : video.at("streams")) text += stream.dump() + "\n";
  text += "metadata\n";
  for (const auto& [key, value] : video.at("metadata").items()) {
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    text += cli::metadata_line(key, shown);
  }
  return text;
}

}  // namespace

cli::Action add_inspect_video(CLI::App& app) {
  auto path = std::make_shared<std::filesystem::path>();
  app.add_option("path", *path, "mp4")->required();
  return [path](const cli::Context& context) {
    const std::string result = inspect(*path);
    std::cout << (context.flags.json ? result + "\n" : as_text(json::parse(result)));
  };
}

}  // namespace sluice::compute
