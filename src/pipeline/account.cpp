#include "pipeline/account.h"

#include "aten/version.h"
#include "pipeline/given_account.h"
#include "pipeline/json_text.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

using nlohmann::json;

constexpr const char* kTag = "sluice";

json scales_json(const sampling::GuidanceScales& scales) {
  return {
      {"cfg", scales.cfg}, {"stg", scales.stg}, {"modality", scales.modality}, {"rescale", scales.rescale}};
}

GuidanceRequest scales_from(const json& scales) {
  return {.cfg = scales.at("cfg"),
          .stg = scales.at("stg"),
          .modality = scales.at("modality"),
          .rescale = scales.at("rescale")};
}

}  // namespace

json settled_request(const PreparedRun& run) {
  const Request& request = run.request;
  const Settings& settings = run.settings;
  const StageSettings& stage = settings.stages.front();
  std::vector<double> sigmas(stage.schedule.sigmas.begin(), stage.schedule.sigmas.end() - 1);
  json all = {{"prompt", request.prompt},
              {"negative_prompt", request.negative_prompt},
              {"width", request.width},
              {"height", request.height},
              {"frames", request.frames},
              {"fps", to_string(request.fps)},
              {"seed", request.seed},
              {"variant", settings.variant == Variant::dev ? "dev" : "distilled"},
              {"sigmas", sigmas},
              {"guidance", scales_json(stage.guidance.video)},
              {"audio_guidance", scales_json(stage.guidance.audio)},
              {"stg_blocks", stage.stg_blocks},
              {"compute_dtype", settings.dtype == at::kBFloat16 ? "bf16" : "f32"},
              {"threads", run.threads}};
  add_given(run, all);
  return all;
}

json versions() {
  return {{"sluice", std::string(version())}, {"libtorch", aten::version()}};
}

json fingerprints(const ModelSet& models, const TextEncoder* encoder) {
  json headers = json::object();
  auto add = [&](const std::string& prefix, const Checkpoint& checkpoint) {
    for (const Shard& shard : checkpoint.shards())
      headers[prefix + shard.path.filename().string()] = shard.header_checksum;
  };
  const bool folder = models.files.layout() == ltx2::Layout::diffusers_folder;
  for (const Checkpoint& checkpoint : models.files.checkpoints()) {
    add(folder ? checkpoint.path().filename().string() + "/" : "", checkpoint);
  }
  if (encoder) add("text_encoder/", encoder->table.checkpoint);
  return {{"model_version", models.files.version()}, {"headers", headers}};
}

std::map<std::string, std::string> video_tags(const json& request, const json& fingerprints) {
  const json all = {{"request", request}, {"versions", versions()}, {"files", fingerprints}};
  return {{"description", request.at("prompt").get<std::string>()},
          {"comment", fmt::format("made with sluice {}: {}x{}, {} frames at {}, seed {}, {} steps", version(),
                                  request.at("width").get<int>(), request.at("height").get<int>(),
                                  request.at("frames").get<int>(), request.at("fps").get<std::string>(),
                                  request.at("seed").get<std::uint64_t>(), request.at("sigmas").size())},
          {kTag, json_text(all, JsonLayout::one_line)}};
}

namespace {

// The request in a video's tag.
template <typename Read>
auto read_tag(const std::map<std::string, std::string>& tags, const std::string& where, Read read) {
  auto tag = tags.find(kTag);
  if (tag == tags.end()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: the file does not tell how it was made", where),
                "give a video that sluice made without --no-metadata");
  }
  try {
    return read(json::parse(tag->second).at("request"));
  } catch (const json::exception& error) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: the tag '{}' is damaged ({})", where, kTag, error.what()),
                "give a video as sluice wrote it");
  }
}

}  // namespace

Request request_from_tags(const std::map<std::string, std::string>& tags, const std::string& where) {
  return read_tag(tags, where, [](const json& r) {
    Request request;
    request.prompt = r.at("prompt");
    request.negative_prompt = r.at("negative_prompt");
    request.width = r.at("width");
    request.height = r.at("height");
    request.frames = r.at("frames");
    request.fps = parse_frame_rate(r.at("fps").get<std::string>());
    request.seed = r.at("seed");
    request.variant = r.at("variant") == "dev" ? Variant::dev : Variant::distilled;
    request.sigmas = r.at("sigmas").get<std::vector<double>>();
    request.guidance = scales_from(r.at("guidance"));
    request.audio_guidance = scales_from(r.at("audio_guidance"));
    request.stg_blocks = r.at("stg_blocks").get<std::vector<std::int64_t>>();
    request.compute_dtype = r.at("compute_dtype") == "bf16" ? ComputeDtype::bf16 : ComputeDtype::f32;
    request.threads = r.at("threads");
    take_given(r, request);
    return request;
  });
}

std::vector<GivenAgain> files_from_tags(const std::map<std::string, std::string>& tags,
                                        const std::string& where) {
  return read_tag(tags, where, [](const json& request) { return files_given(request); });
}

}  // namespace sluice::pipeline
