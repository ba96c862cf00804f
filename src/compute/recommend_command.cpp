#include "compute/commands.h"
#include "compute/request_flags.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice recommend --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/
  sluice recommend --model ltx-2.3-nf4/ --text-encoder gemma-3-12b-nf4/ --width 1280 --height 704 --json

profiles:
  cpu                computing on the CPU, which is all that this program does
  high, medium, low  computing on a GPU of 48, 24 or 8 GB and more: not built
  Weights are staged from disk where less than 18 GB are available.)";

std::string as_text(const nlohmann::json& result) {
  return fmt::format("profile: {} ({})\nscarce: {}\navailable: {}\nflags: {}\ntakes: {}\n",
                     result.at("profile").get<std::string>(), result.at("reason").get<std::string>(),
                     result.at("scarce").get<std::string>(),
                     format_bytes(result.at("available").get<Bytes>()), result.at("flags").get<std::string>(),
                     result.at("loses").get<std::string>());
}

}  // namespace

cli::Action add_recommend(CLI::App& app) {
  auto flags = std::make_shared<RequestFlags>();
  app.footer(kExamples);
  flags->add_to(app);
  return [flags](const cli::Context& context) {
    const std::string result = recommend(flags->request());
    std::cout << (context.flags.json ? result + "\n" : as_text(nlohmann::json::parse(result)));
  };
}

}  // namespace sluice::compute
