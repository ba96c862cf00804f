// sluice-synth: writes checkpoints with the names, shapes and dtypes of published ones and made-up values,
// for tests and measurements without the published weights.
#include "synth/parameters.h"
#include "synth/plan.h"
#include "synth/sizes.h"
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
  std::optional<std::int64_t> blocks;
  std::uint64_t seed = 0;
  bool overwrite = false, dry_run = false;
};

void declare(CLI::App& app, Arguments& to) {
  app.add_option("-o,--output", to.output, "file (single), or folder (shards, diffusers)")->required();
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
  app.add_flag("--overwrite", to.overwrite, "replace what is there");
  app.add_flag("--dry-run", to.dry_run, "print names, dtypes and shapes, write nothing");
  app.footer(
      "examples:\n"
      "  sluice-synth -o tiny.safetensors\n"
      "  sluice-synth -o block-bench --blocks 4 --components transformer --layout diffusers");
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

synth::Plan plan_of(const Arguments& arguments) {
  const synth::Sizes sizes = sizes_of(arguments);
  std::vector<synth::Component> components;
  for (ltx2::ComponentKind kind : kinds_of(arguments)) components.push_back(make_component(kind, sizes));
  const synth::PlanOptions options{.dtype = arguments.dtype == "f32" ? Dtype::F32 : Dtype::BF16,
                                   .model_version = arguments.model_version,
                                   .shard_size = parse_bytes(arguments.shard_size)};
  if (arguments.layout == "shards") return plan_shards(arguments.output, components, sizes, options);
  if (arguments.layout == "diffusers") return plan_diffusers(arguments.output, components, options);
  return plan_single_file(arguments.output, components, sizes, options);
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
  const synth::Plan plan = plan_of(arguments);
  if (arguments.dry_run) return print(plan);
  check_plan(plan, arguments.overwrite ? Existing::overwrite : Existing::refuse);
  write_plan(plan, arguments.seed, [](const std::filesystem::path& path, Bytes size) {
    fmt::print(stderr, "{}  {}\n", path.string(), format_bytes(size));
  });
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
