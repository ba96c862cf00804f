#include "compute/commands.h"
#include "compute/request_flags.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

using nlohmann::json;

constexpr const char* kExamples = R"(examples:
  sluice plan --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/
  sluice plan --model ltx-2.3-nf4/ --text-encoder gemma-3-12b-nf4/ --width 1280 --height 704 --frames 241 \
    --image first.png --memory-limit 10GiB --json

Times come from computing for less than a second and reading 64 MiB of the checkpoint; --no-timing leaves that
out and reads headers and configs only.)";

std::string size(const json& row, const char* key) {
  return format_bytes(row.at(key).get<Bytes>());
}

std::string phase_line(const json& phase) {
  const std::string step = phase.contains("bytes_per_step") ? size(phase, "bytes_per_step") : "";
  const std::string seconds =
      phase.contains("seconds") ? fmt::format("{:.1f} s", phase.at("seconds").get<double>()) : "";
  return fmt::format("{:<14}{:>12}{:>12}{:>14}{:>14}{:>12}\n", phase.at("name").get<std::string>(),
                     size(phase, "bytes_read"), step, size(phase, "peak_anonymous"),
                     size(phase, "page_cache"), seconds);
}

std::string share(const json& value) {
  return fmt::format("{:g}", value.get<double>());
}

// "frames 8 to 16 of earlier.mp4 at frame 0, strength 1"
std::string frames_line(const json& frames) {
  const std::string file = frames.at("file").get<std::string>();
  const std::string strength = share(frames.at("strength"));
  if (frames.at("kind") == "image")
    return fmt::format("  {} at frame {}, strength {}\n", file, frames.at("frame").get<int>(), strength);
  const int first = frames.at("first").get<int>(), last = first + frames.at("count").get<int>() - 1;
  const std::string taken =
      first == last ? fmt::format("frame {}", first) : fmt::format("frames {} to {}", first, last);
  if (frames.at("kind") == "reference")
    return fmt::format("  {} of {} as a reference, strength {}\n", taken, file, strength);
  return fmt::format("  {} of {} at frame {}, strength {}\n", taken, file, frames.at("frame").get<int>(),
                     strength);
}

std::string adapter_lines(const json& adapters, const char* where) {
  std::string text;
  for (const json& adapter : adapters) {
    const std::size_t left = adapter.at("unmatched").size();
    text += fmt::format("  adapter {}{}, strength {}: {} matrices{}\n", adapter.at("file").get<std::string>(),
                        where, share(adapter.at("strength")), adapter.at("matched").get<int>(),
                        left > 0 ? fmt::format(", {} tensors left over", left) : "");
  }
  return text;
}

// What the request has beside words.
std::string given_lines(const json& request) {
  std::string text;
  for (const json& frames : request.value("frames_given", json::array())) text += frames_line(frames);
  if (request.contains("retake")) {
    text += fmt::format("  {} s to {} s are made anew\n", share(request.at("retake").at(0)),
                        share(request.at("retake").at(1)));
  }
  if (request.contains("audio"))
    text += fmt::format("  {} as the sound\n", request.at("audio").at("file").get<std::string>());
  text += adapter_lines(request.value("adapters", json::array()), "");
  if (request.contains("two_stage")) {
    const json& stages = request.at("two_stage");
    text += fmt::format("  {} between the stages\n", stages.at("upsampler").get<std::string>());
    text += adapter_lines(stages.at("adapters"), " in the second stage");
  }
  return text.empty() ? text : "given\n" + text;
}

std::string stage_lines(const json& plan) {
  std::string text;
  if (plan.at("tokens").at("prompts").empty()) return text;  // latents are given: nothing is denoised
  for (const json& stage : plan.at("stages")) {
    const int beside = stage.at("tokens_given").get<int>();
    text += fmt::format("{}x{}: {} video tokens{}, {} audio tokens, {} steps of {} passes\n",
                        stage.at("width").get<int>(), stage.at("height").get<int>(),
                        stage.at("tokens").get<int>(),
                        beside > 0 ? fmt::format(" and {} of what is given", beside) : "",
                        plan.at("tokens").at("audio").get<int>(), stage.at("steps").get<int>(),
                        stage.at("passes_per_step").get<int>());
  }
  return text;
}

std::string weights_lines(const json& phase) {
  std::string text;
  for (const json& weights : phase.at("weights")) {
    const auto blocks = weights.at("blocks").get<std::int64_t>();
    text += fmt::format(
        "  {}: {} from {}{} ({})\n", weights.at("component").get<std::string>(), size(weights, "bytes"),
        weights.at("stage_from").get<std::string>(),
        weights.at("stage_from") == "disk"
            ? fmt::format(", {} of {} blocks stay", weights.at("resident_blocks").get<std::int64_t>(), blocks)
            : "",
        weights.at("reason").get<std::string>());
  }
  if (phase.contains("adapters")) {
    text += fmt::format("  adapters: {} from {}\n", size(phase.at("adapters"), "bytes"),
                        phase.at("adapters").at("stage_from").get<std::string>());
  }
  return text;
}

// What the request lacks to run.
std::string missing_lines(const json& plan) {
  std::string text;
  for (const json& missing : plan.at("missing"))
    text += fmt::format("missing: {}\n", missing.get<std::string>());
  return text;
}

std::string verdict(const json& plan) {
  std::string text = fmt::format("peak {} of {} ({}): {}\n", size(plan, "peak"), size(plan, "limit"),
                                 plan.at("limit_source").get<std::string>(),
                                 plan.at("fits").get<bool>() ? "fits" : "does not fit");
  if (!plan.contains("smallest_change")) return text;
  const json& change = plan.at("smallest_change");
  if (change.is_null()) return text + "not even the smallest clip fits\n";
  return text + fmt::format("what fits: {} (takes {}; peak {})\n", change.at("flags").get<std::string>(),
                            change.at("loses").get<std::string>(), size(change, "peak"));
}

std::string as_text(const json& plan) {
  std::string text = fmt::format("{:<14}{:>12}{:>12}{:>14}{:>14}{:>12}\n", "phase", "reads", "each step",
                                 "anonymous", "page cache", "time");
  for (const json& phase : plan.at("phases")) text += phase_line(phase);
  text += "weights\n";
  for (const json& phase : plan.at("phases")) text += weights_lines(phase);
  text += given_lines(plan.at("request"));
  text += stage_lines(plan);
  if (plan.contains("seconds")) text += fmt::format("about {:.0f} s\n", plan.at("seconds").get<double>());
  text += missing_lines(plan);
  text += verdict(plan);
  for (const json& choice : plan.at("choices")) {
    text += fmt::format("{}: {} ({})\n", choice.at("what").get<std::string>(),
                        choice.at("value").get<std::string>(), choice.at("reason").get<std::string>());
  }
  for (const json& warning : plan.at("warnings"))
    text += fmt::format("warning: {}\n", warning.get<std::string>());
  return text;
}

}  // namespace

cli::Action add_plan(CLI::App& app) {
  struct Flags {
    RequestFlags request;
    bool no_audio = false;
    bool no_timing = false;
  };
  auto flags = std::make_shared<Flags>();
  app.footer(kExamples);
  flags->request.add_to(app);
  app.add_flag("--no-audio", flags->no_audio, "leave the sound out")->group("Output");
  app.add_flag("--no-timing", flags->no_timing, "do not measure this machine: no times")->group("Output");
  return [flags](const cli::Context& context) {
    const std::string result = plan(flags->request.request(), {.sound = !flags->no_audio},
                                    flags->no_timing ? Timing::none : Timing::measured);
    std::cout << (context.flags.json ? result + "\n" : as_text(json::parse(result)));
  };
}

}  // namespace sluice::compute
