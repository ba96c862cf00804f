#include "models/ltx2/upsampler/upsampler.h"
#include "nn/json_file.h"
#include "nn/metadata_config.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string_view>

namespace sluice::ltx2 {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kFirstWeight = "initial_conv.weight";
constexpr std::string_view kRemedy =
    "use a latent upsampler as published: a file like ltx-2.3-spatial-upscaler-x2-1.1.safetensors, or the "
    "folder "
    "latent_upsampler of a diffusers pipeline";

// The folder of the upsampler itself, or of a pipeline that has one.
fs::path own_folder(const fs::path& path) {
  for (const fs::path& folder : {path, path / "latent_upsampler"}) {
    if (fs::exists(folder / "config.json")) return folder;
  }
  throw Error(
      ErrorKind::bad_input,
      fmt::format("{}: the folder has neither config.json nor latent_upsampler/config.json", path.string()),
      std::string(kRemedy));
}

void check_class(const json& config, std::string_view wanted, const std::string& where) {
  const auto name = config.find("_class_name");
  if (name == config.end() || !name->is_string() || *name == wanted) return;
  throw Error(ErrorKind::mismatch,
              fmt::format("{}: it holds a {}, no {}", where, name->get<std::string>(), wanted),
              std::string(kRemedy));
}

void require_upsampler(const Checkpoint& checkpoint, const std::string& where) {
  if (checkpoint.find(kFirstWeight)) return;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: no latent upsampler, since none of its {} tensors is '{}'", where,
                          checkpoint.tensors().size(), kFirstWeight),
              std::string(kRemedy));
}

// The official program has a default that no published file has; the weights say what it is.
void fill_width(json& config, const Checkpoint& checkpoint) {
  const TensorInfo& weight = *checkpoint.find(kFirstWeight);
  const auto width = config.find("mid_channels");
  if ((width == config.end() || width->is_null()) && !weight.shape.empty())
    config["mid_channels"] = weight.shape.front();
}

}  // namespace

UpsamplerFile open_upsampler(const fs::path& path) {
  if (!fs::exists(path))
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no such file or folder", path.string()),
                std::string(kRemedy));
  const bool is_folder = fs::is_directory(path);
  const fs::path weights_path = is_folder ? own_folder(path) : path;
  const Checkpoint checkpoint = Checkpoint::open(weights_path);
  const std::string where = is_folder ? (weights_path / "config.json").string() : path.string();
  require_upsampler(checkpoint, weights_path.string());
  json config =
      is_folder ? nn::read_json_file(weights_path / "config.json") : nn::metadata_config(checkpoint);
  check_class(config, is_folder ? "LTX2LatentUpsamplerModel" : "LatentUpsampler", where);
  fill_width(config, checkpoint);

  UpsamplerFile file{.table = weights::whole_checkpoint("latent upsampler", checkpoint),
                     .model = std::make_unique<LatentUpsampler>(UpsamplerConfig::parse(config, where)),
                     .accounting = {},
                     .version = {}};
  file.accounting =
      weights::account(file.table, file.model->groups(), LatentUpsampler::ignore_rules(file.model->config()));
  if (const auto version = checkpoint.metadata().find("model_version");
      version != checkpoint.metadata().end())
    file.version = version->second;
  return file;
}

}  // namespace sluice::ltx2
