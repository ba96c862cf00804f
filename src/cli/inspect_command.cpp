#include "cli/commands.h"

#include <sluice/checkpoint.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr const char* kExamples = R"(examples:
  sluice inspect ltx-2.3-22b-dev.safetensors
  sluice inspect waves.mp4 --json)";

std::string metadata_text(const json& metadata) {
  std::string text;
  for (const auto& [key, value] : metadata.items()) {
    std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    constexpr std::size_t kShown = 160;
    if (shown.size() > kShown) {
      std::size_t cut = kShown;  // between characters
      while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xc0) == 0x80) --cut;
      shown = fmt::format("{}… ({} bytes, all of it with --json)", shown.substr(0, cut), shown.size());
    }
    text += fmt::format("  {}: {}\n", key, shown);
  }
  return text;
}

std::string checkpoint_text(const json& checkpoint) {
  std::string text;
  Bytes total = 0;
  for (const json& tensor : checkpoint.at("tensors")) {
    const auto shape = tensor.at("shape").get<std::vector<std::int64_t>>();
    text += fmt::format("{:<8}{:<24}{:>12}  {}\n", tensor.at("dtype").get<std::string>(), format_shape(shape),
                        format_bytes(tensor.at("bytes").get<Bytes>()), tensor.at("name").get<std::string>());
    total += tensor.at("bytes").get<Bytes>();
  }
  text += fmt::format("{} tensors, {}\n", checkpoint.at("tensors").size(), format_bytes(total));
  for (const json& file : checkpoint.at("files")) {
    text += fmt::format("{}: {}, header {}\n", file.at("file").get<std::string>(),
                        format_bytes(file.at("bytes").get<Bytes>()),
                        file.at("header_checksum").get<std::string>());
  }
  if (checkpoint.at("model_version").is_string())
    text += fmt::format("model version {}\n", checkpoint.at("model_version").get<std::string>());
  if (!checkpoint.at("metadata").empty()) text += "metadata\n" + metadata_text(checkpoint.at("metadata"));
  for (const json& warning : checkpoint.at("warnings"))
    text += fmt::format("warning: {}\n", warning.get<std::string>());
  return text;
}

std::string video_text(const json& video) {
  std::string text;
  for (const json& stream : video.at("streams")) text += stream.dump() + "\n";
  return text + "metadata\n" + metadata_text(video.at("metadata"));
}

std::string as_text(const json& result) {
  if (result.at("kind") == "video") return video_text(result);
  if (result.at("kind") == "checkpoint") return checkpoint_text(result);
  std::string text;
  for (const auto& [name, component] : result.at("components").items())
    text += name + "\n" + checkpoint_text(component);
  return text;
}

}  // namespace

Action add_inspect(CLI::App& app) {
  auto path = std::make_shared<std::filesystem::path>();
  app.footer(kExamples);
  app.add_option("path", *path, "safetensors file, folder or index, diffusers folder, or mp4")->required();
  return [path](const Context& context) {
    const std::string result = inspect(*path);
    std::cout << (context.flags.json ? result + "\n" : as_text(json::parse(result)));
  };
}

}  // namespace sluice::cli
