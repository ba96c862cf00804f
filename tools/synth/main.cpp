// sluice-synth: writes checkpoints with the names, shapes and dtypes of published ones and made-up values,
// for tests and measurements without the published weights.
#include "synth/parameters.h"
#include "synth/plan.h"
#include "synth/sizes.h"
#include "synth/text_encoder.h"
#include "synth/upsampler.h"
#include "synth/write.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace sluice;

struct Arguments {
  std::string output, preset, config, shard_size = "5G", layout = "single", dtype = "bf16";
  std::string model_version = "2.3.0";
  std::vector<std::string> components;
  std::string text_encoder, tokenizer;
  std::string upsampler, upsampler_kind = "spatial";
  std::optional<std::int64_t> blocks, text_layers, text_hidden, text_vocabulary;
  std::optional<std::int64_t> upsampler_channels, upsampler_width, upsampler_blocks;
  std::uint64_t seed = 0;
  bool overwrite = false, dry_run = false;
};

void declare(CLI::App& app, Arguments& to) {
  app.add_option("-o,--output", to.output, "file (single), or folder (shards, diffusers)");
  app.add_option("--preset", to.preset, "tiny or 22b; default: 22b with --blocks, else tiny");
  app.add_option("--config", to.config, "sizes: a JSON file like the config in a published file's metadata")
      ->excludes("--preset");
  app.add_option("--blocks", to.blocks, "number of transformer blocks")->check(CLI::PositiveNumber);
  app.add_option("--layout", to.layout, "single, shards or diffusers")
      ->check(CLI::IsMember({"single", "shards", "diffusers"}))
      ->capture_default_str();
  app.add_option("--shard-size", to.shard_size, "largest shard")->capture_default_str();
  app.add_option("--components", to.components, "transformer,connectors,vae,audio_vae,vocoder; default: all")
      ->delimiter(',');
  app.add_option("--dtype", to.dtype, "bf16 or f32")
      ->check(CLI::IsMember({"bf16", "f32"}))
      ->capture_default_str();
  app.add_option("--seed", to.seed, "values follow from it and the tensors' names")->capture_default_str();
  app.add_option("--model-version", to.model_version, "model_version in the metadata")->capture_default_str();
  app.add_option("--text-encoder", to.text_encoder, "also, or only, a Gemma 3 folder that fits the sizes");
  app.add_option("--text-layers", to.text_layers, "its layers")->check(CLI::PositiveNumber);
  app.add_option("--text-hidden", to.text_hidden, "its width")->check(CLI::PositiveNumber);
  app.add_option("--text-vocabulary", to.text_vocabulary, "its embeddings")->check(CLI::PositiveNumber);
  app.add_option("--tokenizer", to.tokenizer, "a tokenizer.json to copy into it")->check(CLI::ExistingFile);
  app.add_option("--upsampler", to.upsampler,
                 "also, or only, a latent upsampler that fits the sizes: a file");
  app.add_option("--upsampler-kind", to.upsampler_kind, "what it doubles: spatial, temporal or both")
      ->check(CLI::IsMember({"spatial", "temporal", "both"}))
      ->capture_default_str();
  app.add_option("--upsampler-channels", to.upsampler_channels, "channels of its latents")
      ->check(CLI::PositiveNumber);
  app.add_option("--upsampler-width", to.upsampler_width, "its channels inside, a multiple of 32")
      ->check(CLI::PositiveNumber);
  app.add_option("--upsampler-blocks", to.upsampler_blocks, "its blocks, a stage")
      ->check(CLI::PositiveNumber);
  app.add_flag("--overwrite", to.overwrite, "replace what is there");
  app.add_flag("--dry-run", to.dry_run, "print names, dtypes and shapes, write nothing");
  app.footer(
      "examples:\n"
      "  sluice-synth -o tiny.safetensors --text-encoder tiny-gemma --tokenizer tokenizer.json\n"
      "  sluice-synth -o block-bench --blocks 4 --components transformer --layout diffusers\n"
      "  sluice-synth --upsampler up.safetensors --upsampler-channels 64");
}

synth::Sizes sizes_of(const Arguments& arguments) {
  synth::Sizes sizes;
  if (!arguments.config.empty()) {
    sizes = synth::read_sizes(arguments.config);
  } else if (!arguments.preset.empty()) {
    sizes = synth::preset(arguments.preset);
  } else {
    sizes = synth::preset(arguments.blocks ? "22b" : "tiny");
  }
  return arguments.blocks ? synth::with_blocks(std::move(sizes), *arguments.blocks) : sizes;
}

std::vector<ltx2::ComponentKind> kinds_of(const Arguments& arguments) {
  if (arguments.components.empty()) return {ltx2::kComponentKinds.begin(), ltx2::kComponentKinds.end()};
  std::vector<ltx2::ComponentKind> kinds;
  for (const std::string& name : arguments.components) {
    auto found = std::find_if(ltx2::kComponentKinds.begin(), ltx2::kComponentKinds.end(),
                              [&](ltx2::ComponentKind kind) { return to_string(kind) == name; });
    if (found == ltx2::kComponentKinds.end()) {
      throw Error(ErrorKind::usage, fmt::format("unknown component '{}'", name),
                  "known are transformer, connectors, vae, audio_vae and vocoder");
    }
    kinds.push_back(*found);
  }
  return kinds;
}

synth::Plan checkpoint_plan(const Arguments& arguments, const synth::Sizes& sizes,
                            const synth::PlanOptions& options) {
  std::vector<synth::Component> components;
  for (ltx2::ComponentKind kind : kinds_of(arguments)) components.push_back(make_component(kind, sizes));
  if (arguments.layout == "shards") return plan_shards(arguments.output, components, sizes, options);
  if (arguments.layout == "diffusers") return plan_diffusers(arguments.output, components, options);
  return plan_single_file(arguments.output, components, sizes, options);
}

synth::Plan text_plan(const Arguments& arguments, const synth::Sizes& sizes,
                      const synth::PlanOptions& options) {
  synth::TextSizes text = text_sizes(sizes);
  if (arguments.text_layers) text.num_hidden_layers = *arguments.text_layers;
  if (arguments.text_hidden) text.hidden_size = *arguments.text_hidden;
  if (arguments.text_vocabulary) text.vocab_size = *arguments.text_vocabulary;
  synth::Plan plan;
  synth::TextOptions to{
      .folder = arguments.text_encoder, .dtype = options.dtype, .shard_size = options.shard_size};
  if (!arguments.tokenizer.empty()) to.tokenizer = arguments.tokenizer;
  add_text_encoder(plan, text, to);
  return plan;
}

synth::Plan upsampler_plan(const Arguments& arguments, const synth::Sizes& sizes,
                           const synth::PlanOptions& options) {
  synth::UpsamplerSizes upsampler =
      synth::upsampler_sizes(arguments.upsampler_channels.value_or(latent_channels(sizes)));
  upsampler.width = arguments.upsampler_width.value_or(upsampler.width);
  upsampler.blocks = arguments.upsampler_blocks.value_or(upsampler.blocks);
  upsampler.spatial = arguments.upsampler_kind != "temporal";
  upsampler.temporal = arguments.upsampler_kind != "spatial";
  return plan_upsampler(arguments.upsampler, upsampler, options);
}

// The checkpoint, the text encoder and the upsampler are plans of their own: each is written and replaced by
// itself.
std::vector<synth::Plan> plans_of(const Arguments& arguments) {
  if (arguments.output.empty() && arguments.text_encoder.empty() && arguments.upsampler.empty())
    throw Error(ErrorKind::usage, "nothing to write", "name --output, --text-encoder or --upsampler");
  const synth::Sizes sizes = sizes_of(arguments);
  const synth::PlanOptions options{.dtype = arguments.dtype == "f32" ? Dtype::F32 : Dtype::BF16,
                                   .model_version = arguments.model_version,
                                   .shard_size = parse_bytes(arguments.shard_size)};
  std::vector<synth::Plan> plans;
  if (!arguments.output.empty()) plans.push_back(checkpoint_plan(arguments, sizes, options));
  if (!arguments.text_encoder.empty()) plans.push_back(text_plan(arguments, sizes, options));
  if (!arguments.upsampler.empty()) plans.push_back(upsampler_plan(arguments, sizes, options));
  return plans;
}

void print(const synth::Plan& plan) {
  for (const synth::PlannedFile& file : plan.files) {
    fmt::print("{}\n", file.path.string());
    for (const synth::PlannedTensor& tensor : file.tensors)
      fmt::print("  {} {} {}\n", tensor.name, dtype_name(tensor.dtype), format_shape(tensor.source.shape));
  }
  fmt::print("{} tensors, {} in {} files\n", plan.tensors(), format_bytes(plan.data_size()),
             plan.files.size());
}

void run(const Arguments& arguments) {
  const std::vector<synth::Plan> plans = plans_of(arguments);
  if (arguments.dry_run) {
    std::for_each(plans.begin(), plans.end(), print);
    return;
  }
  const Existing existing = arguments.overwrite ? Existing::overwrite : Existing::refuse;
  for (const synth::Plan& plan : plans) check_plan(plan, existing);
  for (const synth::Plan& plan : plans) {
    write_plan(plan, arguments.seed, [](const std::filesystem::path& path, Bytes size) {
      fmt::print(stderr, "{}  {}\n", path.string(), format_bytes(size));
    });
  }
}

}  // namespace

int main(int count, char** values) {
  CLI::App app("Writes synthetic checkpoints of the LTX-2 family.", "sluice-synth");
  Arguments arguments;
  declare(app, arguments);
  try {
    app.parse(count, values);
    run(arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : error_kind_info(ErrorKind::usage).exit_code;
  } catch (const Error& error) {
    fmt::print(stderr, "sluice-synth: {}\n", error.what());
    if (!error.hint().empty()) fmt::print(stderr, "  try: {}\n", error.hint());
    return error_kind_info(error.kind()).exit_code;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sluice-synth: {}\n", error.what());
    return error_kind_info(ErrorKind::internal).exit_code;
  }
  return 0;
}
