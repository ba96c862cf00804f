#include "bytes/format/impostor.h"
#include "bytes/format/inventory.h"
#include "bytes/format/json_events.h"
#include "media/probe.h"
#include "pipeline/json_text.h"

#include <sluice/sluice.h>

#include <nlohmann/json.hpp>

#include <sstream>

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using pipeline::json_text;

json metadata_json(const std::map<std::string, std::string>& metadata) {
  json out = json::object();
  for (const auto& [key, value] : metadata) {
    // Values that are JSON themselves are shown as such, as the official readers do.
    out[key] = bytes::is_json_container(value) ? json::parse(value) : json(value);
  }
  return out;
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

}  // namespace

std::string inspect(const fs::path& path) {
  if (bytes::is_video(path)) return json_text(video_json(path));
  std::ostringstream out;
  bytes::write_json(bytes::take_inventory(path), out);
  return std::move(out).str();
}

}  // namespace sluice
