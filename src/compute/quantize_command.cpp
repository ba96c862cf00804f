#include "compute/commands.h"

#include "cli/figures.h"
#include "cli/nearest.h"
#include "cli/parse_word.h"

#include <sluice/error.h>
#include <sluice/quantize.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

namespace sluice::compute {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice quantize ltx-2.3-22b-dev.safetensors -o ltx-2.3-22b-dev-nf4 --format nf4
  sluice quantize gemma-3-12b/ -o gemma-3-12b-nf4 --format nf4 --json

interrupted or killed, the same command goes on after the last complete shard)";

constexpr std::array kComponents = {QuantizeComponent::transformer, QuantizeComponent::text_encoder,
                                    QuantizeComponent::connectors};

struct Flags {
  QuantizeRequest request;
  std::string format, shard_size, memory_limit, backend = "auto", cache = "auto";
  std::vector<std::string> components;
};

QuantizeComponent parse_component(const std::string& name) {
  const auto found =
      std::ranges::find_if(kComponents, [&](QuantizeComponent known) { return to_string(known) == name; });
  if (found != kComponents.end()) return *found;
  const auto nearest = std::ranges::min_element(
      kComponents, {}, [&](QuantizeComponent known) { return cli::edit_distance(name, to_string(known)); });
  throw Error(ErrorKind::usage, fmt::format("--components '{}' is unknown, or has nothing to quantize", name),
              fmt::format("did you mean {}? known are transformer, text_encoder and connectors",
                          to_string(*nearest)));
}

QuantizeRequest request_of(const Flags& flags) {
  QuantizeRequest request = flags.request;
  request.format =
      cli::parse_word<QuantizeFormat>("--format", flags.format,
                                      std::array{cli::Word<QuantizeFormat>{"fp8", QuantizeFormat::fp8},
                                                 cli::Word<QuantizeFormat>{"nf4", QuantizeFormat::nf4}});
  for (const std::string& name : flags.components) request.components.push_back(parse_component(name));
  request.read_backend = parse_read_backend(flags.backend);
  request.cache = parse_cache_policy(flags.cache);
  if (!flags.shard_size.empty()) request.shard_size = parse_bytes(flags.shard_size);
  if (request.shard_size == 0) throw Error(ErrorKind::usage, "--shard-size 0 holds nothing", "give 2GiB");
  if (!flags.memory_limit.empty()) request.memory_limit = parse_bytes(flags.memory_limit);
  return request;
}

std::string as_text(const nlohmann::json& result) {
  const auto bytes = [&](const char* key) { return result.at(key).get<Bytes>(); };
  const auto seconds = result.at("seconds").get<double>();
  std::string text =
      fmt::format("{}\n{} in {}, {} read and {} written in {:.1f} s: {:.2f} GiB/s, peak {} of memory\n",
                  result.at("output").get<std::string>(),
                  cli::counted(result.at("quantized_tensors").get<std::size_t>(), "tensor"),
                  result.at("format").get<std::string>(), format_bytes(bytes("bytes_in")),
                  format_bytes(bytes("bytes_out")), seconds, cli::gib_per_second(bytes("bytes_in"), seconds),
                  format_bytes(bytes("peak_anonymous")));
  if (const auto taken_up = result.at("shards_taken_up").get<std::size_t>(); taken_up > 0) {
    text += fmt::format("{} of {} were there from an earlier run\n", cli::counted(taken_up, "shard"),
                        result.at("shards").get<std::size_t>());
  }
  return text;
}

}  // namespace

cli::Action add_quantize(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.footer(kExamples);
  app.add_option("input", flags->request.input,
                 "published file, folder of shards, diffusers folder, or a text encoder's folder")
      ->required();
  app.add_option("-o,--output", flags->request.output, "folder to make")->required();
  app.add_option("--format", flags->format, "fp8 (8 bits, a scale a matrix) or nf4 (4.5 bits)")->required();
  app.add_option("--components", flags->components,
                 "transformer, text_encoder, connectors (default: the first two, where they are)")
      ->delimiter(',');
  app.add_option("--shard-size", flags->shard_size, "largest output file (default 2 GiB)")->type_name("SIZE");
  app.add_flag("--overwrite", flags->request.overwrite,
               "replace an existing folder, when the new one is complete");
  const char* machine = "Machine";
  app.add_option("--memory-limit", flags->memory_limit, "most memory to hold (default: about 0.5 GiB)")
      ->type_name("SIZE")
      ->group(machine);
  app.add_option("--read-backend", flags->backend, "auto, mmap, pread, direct (past the page cache) or uring")
      ->capture_default_str()
      ->group(machine);
  app.add_option("--cache", flags->cache, "the page cache of the source: auto, keep, drop or prefetch")
      ->capture_default_str()
      ->group(machine);
  return [flags](const cli::Context& context) {
    const std::string result = quantize(request_of(*flags), &context.progress, &context.cancel);
    if (context.flags.json) {
      std::cout << result << "\n";
    } else if (!context.flags.quiet) {
      std::cout << as_text(nlohmann::json::parse(result));
    }
  };
}

}  // namespace sluice::compute
