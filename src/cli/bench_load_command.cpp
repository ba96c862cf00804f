#include "cli/bench_file.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/load_bench.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iostream>
#include <memory>
#include <optional>

namespace sluice::cli {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice bench load ltx-2.3-22b-dev-shard-1.safetensors
  sluice bench load --dir /mnt/models --size 4GiB --rounds 5)";

constexpr Bytes kLeastSize = MiB(1);
constexpr unsigned kMostRounds = 1000;

struct BenchFlags {
  std::filesystem::path path, folder = ".";
  std::string size = "1GiB";
  unsigned rounds = 3;
};

void run_bench(const BenchFlags& flags, const Context& context) {
  if (flags.rounds == 0 || flags.rounds > kMostRounds) {
    throw Error(ErrorKind::usage, fmt::format("--rounds {} is impossible", flags.rounds),
                fmt::format("give a number between 1 and {}", kMostRounds));
  }
  const Bytes size = parse_bytes(flags.size);
  if (size < kLeastSize) {
    throw Error(ErrorKind::usage, fmt::format("--size {} is too small to measure with", flags.size),
                fmt::format("give {} or more", format_bytes(kLeastSize)));
  }
  std::optional<BenchFile> made;
  if (flags.path.empty()) made.emplace(flags.folder, size, context.progress, context.cancel);
  const Checkpoint checkpoint = Checkpoint::open(made ? made->path() : flags.path);
  const BenchFigures figures = bench_load(checkpoint, flags.rounds, context.progress, context.cancel);
  if (context.flags.json) {
    print_json(as_json(figures));
  } else {
    std::cout << as_text(figures);
  }
}

}  // namespace

Action add_bench_load(CLI::App& app) {
  auto flags = std::make_shared<BenchFlags>();
  app.footer(kExamples);
  auto* path =
      app.add_option("path", flags->path,
                     "safetensors file, folder or index to read; without it a file is made, and removed");
  const char* group = "Without a path";
  app.add_option("--dir", flags->folder, "where the file is made (default: here)")
      ->excludes(path)
      ->type_name("FOLDER")
      ->group(group);
  app.add_option("--size", flags->size, "of the file that is made")
      ->excludes(path)
      ->capture_default_str()
      ->type_name("SIZE")
      ->group(group);
  app.add_option("--rounds", flags->rounds, "every way is measured once in each")->capture_default_str();
  return [flags](const Context& context) { run_bench(*flags, context); };
}

}  // namespace sluice::cli
