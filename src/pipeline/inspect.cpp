#include "media/probe.h"
#include "pipeline/json_text.h"

#include <sluice/checkpoint.h>
#include <sluice/sluice.h>

#include <nlohmann/json.hpp>

#include <array>
#include <fstream>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using pipeline::json_text;

// ISO media files begin with a box "ftyp".
bool is_video(const fs::path& path) {
  std::array<char, 8> head{};
  std::ifstream file(path, std::ios::binary);
  return file.read(head.data(), head.size()) && std::string_view(head.data() + 4, 4) == "ftyp";
}

json metadata_json(const std::map<std::string, std::string>& metadata) {
  json out = json::object();
  for (const auto& [key, value] : metadata) {
    // Values that are JSON themselves are shown as such, as the official readers do.
    json parsed = json::parse(value, nullptr, false);
    out[key] = parsed.is_object() || parsed.is_array() ? parsed : json(value);
  }
  return out;
}

json checkpoint_json(const Checkpoint& checkpoint) {
  json files = json::array(), tensors = json::array();
  for (const Shard& shard : checkpoint.shards()) {
    files.push_back({{"file", shard.path.filename().string()},
                     {"bytes", shard.file_size},
                     {"header_bytes", shard.header_size},
                     {"header_checksum", shard.header_checksum}});
  }
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    tensors.push_back({{"name", tensor.name},
                       {"dtype", dtype_name(tensor.dtype)},
                       {"shape", tensor.shape},
                       {"bytes", tensor.size},
                       {"file", checkpoint.shards()[tensor.shard].path.filename().string()}});
  }
  const auto& metadata = checkpoint.metadata();
  auto version = metadata.find("model_version");
  return {{"kind", "checkpoint"},
          {"files", files},
          {"metadata", metadata_json(metadata)},
          {"model_version", version == metadata.end() ? json(nullptr) : json(version->second)},
          {"tensors", tensors},
          {"warnings", checkpoint.warnings()}};
}

json video_json(const fs::path& path) {
  const media::MediaInfo info = media::probe(path);
  json streams = json::array();
  for (const auto& v : info.video) {
    streams.push_back({{"type", "video"},
                       {"codec", v.codec},
                       {"width", v.width},
                       {"height", v.height},
                       {"frames", v.frames},
                       {"rate", to_string(v.rate)},
                       {"seconds", v.seconds},
                       {"pixel_format", v.pixel_format},
                       {"matrix", v.matrix},
                       {"range", v.range}});
  }
  for (const auto& s : info.sound) {
    streams.push_back({{"type", "sound"},
                       {"codec", s.codec},
                       {"sample_rate", s.sample_rate},
                       {"channels", s.channels},
                       {"seconds", s.seconds}});
  }
  return {{"kind", "video"},
          {"seconds", info.seconds},
          {"streams", streams},
          {"metadata", metadata_json(info.metadata)}};
}

// A diffusers folder: every component that has weights.
json folder_json(const fs::path& path) {
  json components = json::object();
  for (const auto& entry : fs::directory_iterator(path)) {
    if (!entry.is_directory()) continue;
    for (const auto& file : fs::directory_iterator(entry.path())) {
      if (file.path().extension() != ".safetensors") continue;
      components[entry.path().filename().string()] = checkpoint_json(Checkpoint::open(entry.path()));
      break;
    }
  }
  return {{"kind", "diffusers folder"}, {"components", components}};
}

}  // namespace

std::string inspect(const fs::path& path) {
  if (fs::is_regular_file(path) && is_video(path)) return json_text(video_json(path));
  if (fs::exists(path / "model_index.json")) return json_text(folder_json(path));
  return json_text(checkpoint_json(Checkpoint::open(path)));
}

}  // namespace sluice
