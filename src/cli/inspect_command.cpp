#include "base/text.h"
#include "bytes/format/impostor.h"
#include "bytes/format/inventory.h"
#include "cli/commands.h"
#include "cli/figures.h"
#include "cli/metadata_line.h"
#include "cli/tensor_line.h"

#include <sluice/checkpoint.h>

#include <fmt/format.h>

#include <iostream>
#include <memory>

namespace sluice::cli {
namespace {

constexpr const char* kExamples = R"(examples:
  sluice inspect ltx-2.3-22b-dev.safetensors
  sluice inspect waves.mp4 --json)";

// What comes from a file is made printable: none of its bytes may reach a terminal as a command.
void write_text(const Checkpoint& checkpoint, std::ostream& out) {
  Bytes total = 0;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    out << tensor_line(tensor.dtype, tensor.shape, tensor.size, tensor.name);
    total += tensor.size;
  }
  out << fmt::format("{}, {}\n", counted(checkpoint.tensors().size(), "tensor"), format_bytes(total));
  for (const Shard& shard : checkpoint.shards()) {
    out << fmt::format("{}: {}, header {}\n", printable(shard.path.filename().string()),
                       format_bytes(shard.file_size), shard.header_checksum);
  }
  const auto& metadata = checkpoint.metadata();
  if (auto version = metadata.find("model_version"); version != metadata.end())
    out << fmt::format("model version {}\n", in_quotes(version->second));
  if (!metadata.empty()) out << "metadata\n";
  for (const auto& [key, value] : metadata) out << metadata_line(key, value);
  for (const std::string& warning : checkpoint.warnings())
    out << fmt::format("warning: {}\n", printable(warning));
}

}  // namespace

Action add_inspect(CLI::App& app) {
  auto path = std::make_shared<std::filesystem::path>();
  app.footer(kExamples);
  app.add_option("path", *path, "safetensors file, folder or index, diffusers folder, or mp4")->required();
  return [path](const Context& context) {
    if (bytes::is_video(*path)) hand_over(context);
    const bytes::Inventory inventory = bytes::take_inventory(*path);
    if (context.flags.json) {
      bytes::write_json(inventory, std::cout);
      std::cout << "\n";
      return;
    }
    for (const auto& [name, checkpoint] : inventory.parts) {
      if (inventory.diffusers) std::cout << printable(name) << "\n";
      write_text(checkpoint, std::cout);
    }
  };
}

}  // namespace sluice::cli
