#include "compute/commands.h"
#include "compute/request_flags.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice generate --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/ \
    --prompt "waves break on a pebble beach, gulls call" -o waves.mp4
  sluice generate --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/ \
    --image harbour.jpg --audio gulls.wav --prompt "a boat leaves the harbour" -o harbour.mp4
  sluice generate --from waves.mp4 --model ltx-2.3-22b-distilled-1.1.safetensors --text-encoder gemma-3-12b/ \
    --seed 7 --wav waves.wav -o other.mp4)";

struct Flags {
  RequestFlags request;
  Outputs outputs;
  bool no_audio = false;
  bool no_metadata = false;
};

// What was made, for people.
std::string summary(const Outputs& outputs, const Request& request, const nlohmann::json& report) {
  std::string text;
  auto line = [&](const std::filesystem::path& path) {
    if (!path.empty()) text += path.string() + "\n";
  };
  for (std::size_t clip = 0; clip < static_cast<std::size_t>(request.count); ++clip) {
    const Outputs own = outputs_of_clip(outputs, request, clip);
    for (const auto& path : {own.video, own.wav, own.frames_dir, own.latents, own.trace}) line(path);
  }
  line(outputs.report);
  double seconds = 0;
  for (const auto& phase : report.at("phases")) seconds += phase.at("seconds").get<double>();
  return text +
         fmt::format("{:.1f} s, seed {}\n", seconds, report.at("request").at("seed").get<std::uint64_t>());
}

}  // namespace

cli::Action add_generate(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.footer(kExamples);
  flags->request.add_to(app);
  const char* group = "Output";
  app.add_option("-o,--output", flags->outputs.video, "mp4 to write")->type_name("FILE")->group(group);
  app.add_flag("--no-audio", flags->no_audio, "leave the sound out; the picture stays the same")
      ->group(group);
  app.add_option("--wav", flags->outputs.wav, "the sound as WAV too")->type_name("FILE")->group(group);
  app.add_option("--frames-dir", flags->outputs.frames_dir, "the frames as PNG too")
      ->type_name("FOLDER")
      ->group(group);
  app.add_option("--latents", flags->outputs.latents, "the final latents as safetensors")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--no-metadata", flags->no_metadata, "do not write into the mp4 how it was made")
      ->group(group);
  app.add_option("--report", flags->outputs.report,
                 "JSON: choices, and per phase time, bytes read and memory")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--trace", flags->outputs.trace, "safetensors with the latents after every step")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--resume", flags->outputs.resume,
               "go on from what an interrupted run of the same request left in its work folder")
      ->group(group);
  app.add_option("--work-dir", flags->outputs.work_dir,
                 "folder for that (default: <first output>.sluice-work, removed at the end)")
      ->type_name("FOLDER")
      ->group(group);
  app.add_flag("--overwrite", flags->outputs.overwrite, "replace existing files")->group(group);
  return [flags, &app](const cli::Context& context) {
    flags->outputs.sound = !flags->no_audio;
    flags->outputs.metadata = !flags->no_metadata;
    const Request request = flags->request.request();
    if (request.prompt.empty() && request.inject.empty() && request.decode_latents.empty() &&
        app.count("--prompt") == 0 && app.count("--from") == 0) {
      throw Error(ErrorKind::usage, "no prompt given", "add --prompt \"…\"");
    }
    const std::string report = generate(request, flags->outputs, &context.progress, &context.cancel);
    if (context.flags.json) {
      std::cout << report << "\n";
    } else if (!context.flags.quiet) {
      std::cout << summary(flags->outputs, request, nlohmann::json::parse(report));
    }
  };
}

}  // namespace sluice::compute
