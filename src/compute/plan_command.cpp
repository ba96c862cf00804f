#include "compute/commands.h"
#include "compute/request_flags.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice plan --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/
  sluice plan --model ltx-2.3-22b-dev.safetensors --text-encoder gemma-3-12b/ --width 1280 --height 704 --frames 241 --json)";

std::string size(const nlohmann::json& row, const char* key) {
  return format_bytes(row.at(key).get<Bytes>());
}

std::string as_text(const nlohmann::json& plan) {
  std::string text = fmt::format("{:<14}{:>12}{:>18}\n", "phase", "reads", "anonymous memory");
  for (const auto& phase : plan.at("phases")) {
    text += fmt::format("{:<14}{:>12}{:>18}\n", phase.at("name").get<std::string>(),
                        size(phase, "bytes_read"), size(phase, "peak_anonymous"));
  }
  const auto& tokens = plan.at("tokens");
  text += fmt::format("{} video tokens, {} audio tokens, {} steps of {} passes\n",
                      tokens.at("video").get<int>(), tokens.at("audio").get<int>(),
                      plan.at("request").at("sigmas").size(), plan.at("passes_per_step").get<int>());
  text += fmt::format("peak {} of {} available: {}\n", size(plan, "peak_anonymous"), size(plan, "available"),
                      plan.at("fits").get<bool>() ? "fits" : "does not fit");
  for (const auto& choice : plan.at("choices")) {
    text += fmt::format("{}: {} ({})\n", choice.at("what").get<std::string>(),
                        choice.at("value").get<std::string>(), choice.at("reason").get<std::string>());
  }
  for (const auto& warning : plan.at("warnings"))
    text += fmt::format("warning: {}\n", warning.get<std::string>());
  return text;
}

}  // namespace

cli::Action add_plan(CLI::App& app) {
  auto flags = std::make_shared<RequestFlags>();
  auto no_audio = std::make_shared<bool>(false);
  app.footer(kExamples);
  flags->add_to(app);
  app.add_flag("--no-audio", *no_audio, "leave the sound out")->group("Output");
  return [flags, no_audio](const cli::Context& context) {
    const std::string result = plan(flags->request(), {.sound = !*no_audio});
    std::cout << (context.flags.json ? result + "\n" : as_text(nlohmann::json::parse(result)));
  };
}

}  // namespace sluice::compute
