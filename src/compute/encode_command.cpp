#include "compute/commands.h"
#include "compute/request_flags.h"

#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice encode --model ltx-2.3-22b-dev.safetensors --text-encoder gemma-3-12b/ --prompt "a cat yawns" -o context.safetensors
  sluice encode --text-encoder gemma-3-270m/ --prompt "a cat yawns" --hidden-states -o states.safetensors)";

struct Flags {
  EncodeRequest request;
  std::string dtype = "auto";
  WeightFlags reading;
};

}  // namespace

cli::Action add_encode(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  EncodeRequest& request = flags->request;
  app.footer(kExamples);
  app.add_option("--text-encoder", request.text_encoder, "folder of the Gemma 3 text encoder");
  app.add_option("--model", request.model, "LTX-2.3 checkpoint, whose connectors make the context");
  app.add_option("--prompt", request.prompt, "the text")->required();
  app.add_option("-o,--output", request.output, "safetensors to write")->required();
  app.add_flag("--hidden-states", request.hidden_states, "the text encoder's states instead of the context");
  app.add_flag("--overwrite", request.overwrite, "replace an existing file");
  app.add_option("--compute-dtype", flags->dtype, "auto, f32 or bf16")->capture_default_str();
  flags->reading.add_to(app);
  app.add_option("--threads", request.threads, "compute threads (default: all cores)");
  return [flags](const cli::Context& context) {
    flags->request.compute_dtype = parse_dtype(flags->dtype);
    flags->reading.apply(flags->request.read_backend, flags->request.cache);
    const std::string result = encode(flags->request, &context.progress, &context.cancel);
    if (context.flags.json) {
      std::cout << result << "\n";
    } else if (!context.flags.quiet) {
      std::cout << flags->request.output.string() << "\n";
    }
  };
}

}  // namespace sluice::compute
