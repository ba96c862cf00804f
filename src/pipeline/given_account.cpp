#include "pipeline/given_account.h"

#include "base/output_name.h"
#include "media/picture_fit.h"
#include "pipeline/encode_conditions.h"
#include "pipeline/file_fingerprint.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace sluice::pipeline {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

template <typename Value, std::size_t N>
using Words = std::array<std::pair<Value, const char*>, N>;

constexpr Words<Fit, 3> kFits = {{{Fit::crop, "crop"}, {Fit::pad, "pad"}, {Fit::stretch, "stretch"}}};
constexpr Words<Sampler, 3> kSamplers = {
    {{Sampler::euler, "euler"}, {Sampler::euler_ancestral, "euler_ancestral"}, {Sampler::res_2s, "res_2s"}}};
constexpr Words<Streams, 3> kStreams = {
    {{Streams::both, "both"}, {Streams::video, "video"}, {Streams::audio, "audio"}}};
constexpr Words<FrameSource, 3> kSources = {
    {{FrameSource::image, "image"}, {FrameSource::video, "video"}, {FrameSource::reference, "reference"}}};

template <typename Value, std::size_t N>
const char* word(const Words<Value, N>& words, Value value) {
  for (const auto& [own, name] : words)
    if (own == value) return name;
  return "";
}

template <typename Value, std::size_t N>
Value value_of(const Words<Value, N>& words, const std::string& name, Value fallback) {
  for (const auto& [own, text] : words)
    if (text == name) return own;
  return fallback;
}

std::string name_of(const fs::path& file) {
  return without_slash(file).filename().string();
}

json frames_json(const PlannedFrames& frames) {
  json row = {{"kind", word(kSources, frames.source)},
              {"file", name_of(frames.file)},
              {"checksum", sampled_checksum(frames.file)},
              {"strength", frames.strength}};
  if (frames.source != FrameSource::reference) row["frame"] = frames.frame;
  if (frames.source != FrameSource::image) {
    row["first"] = frames.first;
    row["count"] = frames.count;
  }
  if (frames.source == FrameSource::reference) row["downscale"] = frames.downscale;
  return row;
}

json adapter_json(const PreparedRun& run, std::size_t index, const Adapter& adapter) {
  const weights::LoraFile& file = *run.adapters[index];
  return {{"file", name_of(adapter.file)},
          {"header", file.checkpoint.shards().front().header_checksum},
          {"checksum", sampled_checksum(file.checkpoint.shards().front())},
          {"strength", adapter.strength},
          {"matched", file.pairs.size()},
          {"unmatched", file.unmatched},
          {"ranks", {file.lowest_rank, file.highest_rank}}};
}

json two_stage_json(const PreparedRun& run) {
  const TwoStageRequest& request = *run.request.two_stage;
  const Checkpoint& upsampler = run.upsampler->table.checkpoint;
  const auto& sigmas = run.settings.stages.back().schedule.sigmas;
  json row = {{"upsampler", name_of(request.upsampler)},
              {"header", upsampler.shards().front().header_checksum},
              {"checksum", sampled_checksum(upsampler.shards().front())},
              {"adain", request.adain},
              {"tone_map", request.tone_map},
              {"sigmas", std::vector<double>(sigmas.begin(), sigmas.end() - 1)},
              {"adapters", json::array()}};
  for (std::size_t i = 0; i < request.adapters.size(); ++i)
    row["adapters"].push_back(adapter_json(run, run.request.adapters.size() + i, request.adapters[i]));
  return row;
}

}  // namespace

void add_given(const PreparedRun& run, json& all) {
  const Request& request = run.request;
  if (!request.decode_latents.empty()) return;
  all["sampler"] = word(kSamplers, request.sampler);
  if (request.streams != Streams::both) all["streams"] = word(kStreams, request.streams);
  for (const PlannedFrames& frames : run.settings.conditions.frames)
    all["frames_given"].push_back(frames_json(frames));
  if (run.settings.conditions.any_frames()) {
    all["fit"] = word(kFits, request.fit);
    all["image_crf"] = image_crf(request);
    all["frames_from"] = request.frames_from;
    all["reference_attention"] = request.reference_attention;
  }
  if (!request.audio.empty())
    all["audio"] = {{"file", name_of(request.audio)}, {"checksum", sampled_checksum(request.audio)}};
  if (request.retake) all["retake"] = {request.retake->start, request.retake->end};
  for (std::size_t i = 0; i < request.adapters.size(); ++i)
    all["adapters"].push_back(adapter_json(run, i, request.adapters[i]));
  if (request.two_stage) all["two_stage"] = two_stage_json(run);
}

void take_given(const json& from, Request& into) {
  into.sampler = value_of(kSamplers, from.value("sampler", "euler"), Sampler::euler);
  into.streams = value_of(kStreams, from.value("streams", "both"), Streams::both);
  into.fit = value_of(kFits, from.value("fit", "crop"), Fit::crop);
  if (from.contains("image_crf")) into.image_crf = from.at("image_crf").get<int>();
  into.frames_from = from.value("frames_from", std::int64_t{0});
  into.reference_attention = from.value("reference_attention", 1.0);
  if (from.contains("two_stage")) {
    into.two_stage.emplace();
    into.two_stage->adain = from.at("two_stage").at("adain");
    into.two_stage->tone_map = from.at("two_stage").at("tone_map");
  }
  if (from.contains("retake")) into.retake = {from.at("retake").at(0), from.at("retake").at(1)};
}

std::vector<GivenAgain> files_given(const json& from) {
  std::vector<GivenAgain> files;
  for (const json& row : from.value("frames_given", json::array())) {
    const std::string kind = row.at("kind");
    const std::string place = row.contains("frame") ? fmt::format("@{}", row.at("frame").get<int>()) : "";
    files.push_back({"--" + kind, fmt::format("--{} {}{}:{}", kind, row.at("file").get<std::string>(), place,
                                              row.at("strength").get<double>())});
  }
  if (from.contains("audio"))
    files.push_back({"--audio", "--audio " + from.at("audio").at("file").get<std::string>()});
  auto adapters = [&](const json& rows, const char* flag) {
    for (const json& row : rows) {
      files.push_back({flag, fmt::format("{} {}:{}", flag, row.at("file").get<std::string>(),
                                         row.at("strength").get<double>())});
    }
  };
  adapters(from.value("adapters", json::array()), "--lora");
  if (!from.contains("two_stage")) return files;
  const json& stages = from.at("two_stage");
  files.push_back({"--upsampler", "--upsampler " + stages.at("upsampler").get<std::string>()});
  adapters(stages.value("adapters", json::array()), "--stage-2-lora");
  return files;
}

json media_json(const PreparedRun& run) {
  json rows = json::array();
  const media::FitSize size{.width = static_cast<int>(run.request.width),
                            .height = static_cast<int>(run.request.height)};
  auto add = [&](const fs::path& file, int width, int height, json row) {
    row["file"] = name_of(file);
    row["size"] = {width, height};
    if (auto note = media::fit_note({width, height}, media_fit(run.request.fit), size); !note.empty())
      row["fit"] = note;
    rows.push_back(std::move(row));
  };
  for (std::size_t i = 0; i < run.media.images.size(); ++i) {
    const media::PictureInfo& info = run.media.images[i];
    add(run.request.images[i].file, info.width, info.height, {{"codec", info.codec}});
  }
  auto add_videos = [&](const std::vector<media::ReadableVideo>& found, const auto& requested) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      const media::ReadableVideo& info = found[i];
      add(requested[i].file, info.width, info.height,
          {{"frames", info.frames},
           {"rate", to_string(info.rate)},
           {"variable_rate", info.variable_rate},
           {"seconds", info.seconds},
           {"converted", info.conversions}});
    }
  };
  add_videos(run.media.videos, run.request.videos);
  add_videos(run.media.references, run.request.references);
  if (const auto& sound = run.media.sound) {
    rows.push_back({{"file", name_of(run.request.audio)},
                    {"codec", sound->codec},
                    {"sample_rate", sound->sample_rate},
                    {"channels", sound->channels},
                    {"seconds", sound->seconds()}});
  }
  return rows;
}

}  // namespace sluice::pipeline
