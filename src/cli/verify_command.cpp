#include "base/log.h"
#include "cli/checksum_list.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_output.h"
#include "cli/load_result.h"
#include "cli/read_flags.h"
#include "cli/verified.h"

#include <sluice/memory.h>

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>
#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice verify ltx-2.3-22b-dev.safetensors
  sluice verify model/ --deep --json > checksums.json
  sluice verify copy/ --deep --checksums checksums.json)";

struct VerifyFlags {
  std::filesystem::path path, checksums;
  ReadFlags read;
  bool deep = false;
};

void read_everything(Verified& verified, const VerifyFlags& flags, const ReadOptions& options,
                     const Context& context) {
  require_memory({.pool = options.pool}, available_memory(), flags.path.string());
  const auto start = std::chrono::steady_clock::now();
  for (const auto& [name, checkpoint] : verified.inventory.parts) {
    verified.audits.push_back(bytes::audit(checkpoint, options, &context.progress, &context.cancel));
    for (const ShardLoadReport& shard : verified.audits.back().report.shards) log_info(choice_line(shard));
  }
  verified.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void show(const Verified& verified, const std::optional<Error>& wrong, const Context& context) {
  if (!context.flags.json) {
    std::cout << as_text(verified) << std::flush;
    if (wrong) throw *wrong;
    return;
  }
  nlohmann::json object = as_json(verified);
  if (wrong) object["error"] = as_json(*wrong);
  print_json(object);
  if (wrong) throw ErrorInResult{wrong->kind()};
}

void run_verify(const VerifyFlags& flags, const Context& context) {
  const ReadOptions options = flags.read.options();
  ChecksumList expected;
  if (!flags.checksums.empty()) expected = read_checksums(flags.checksums);
  Verified verified{.inventory = bytes::take_inventory(flags.path), .audits = {}};
  if (flags.deep) read_everything(verified, flags, options, context);
  std::optional<Error> wrong;
  if (!flags.checksums.empty()) wrong = checksum_error(verified, expected, flags.path.string());
  if (!wrong) wrong = non_finite_error(verified, flags.path.string());
  show(verified, wrong, context);
}

}  // namespace

Action add_verify(CLI::App& app) {
  auto flags = std::make_shared<VerifyFlags>();
  app.footer(kExamples);
  app.add_option("path", flags->path, "safetensors file, folder or index, or diffusers folder")->required();
  auto* deep = app.add_flag("--deep", flags->deep,
                            "read everything: a checksum for each tensor (XXH3-128, as xxhsum -H2) and each "
                            "file, and a search for NaN and infinity");
  app.add_option("--checksums", flags->checksums, "compare with what --deep --json printed earlier")
      ->needs(deep)
      ->type_name("FILE");
  flags->read.add_to(app);
  return [flags](const Context& context) { run_verify(*flags, context); };
}

}  // namespace sluice::cli
