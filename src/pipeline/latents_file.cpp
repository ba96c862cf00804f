#include "pipeline/latents_file.h"

#include "base/log.h"
#include "sampling/finite.h"
#include "weights/tensor_file.h"

#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

constexpr const char* kVideo = "video_latents";
constexpr const char* kAudio = "audio_latents";

struct Shapes {
  std::vector<std::int64_t> video, audio;
};

at::Tensor take(const weights::TensorMap& tensors, const std::string& name,
                const std::vector<std::int64_t>& shape, const std::filesystem::path& path) {
  auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no tensor '{}'", path.string(), name),
                "give a file that sluice wrote with --latents");
  }
  if (found->second.sizes() != at::IntArrayRef(shape)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' is {}, the request needs {}", path.string(), name,
                            format_shape(found->second.sizes().vec()), format_shape(shape)),
                "ask for the width, height, frames and rate that the latents were made with");
  }
  at::Tensor latents = found->second.to(at::kFloat);
  sampling::check_finite(latents, fmt::format("{}: '{}'", path.string(), name));
  return latents;
}

void warn_if_unfinished(const std::filesystem::path& path) {
  const auto& metadata = Checkpoint::open(path).metadata();
  auto done = metadata.find("steps_done"), all = metadata.find("steps");
  if (done == metadata.end() || all == metadata.end() || done->second == all->second) return;
  log_warning(fmt::format("{}: denoised for {} of {} steps only", path.string(), done->second, all->second));
}

std::string name_of(const char* stream, std::size_t clip) {
  return clip == 0 ? stream : fmt::format("{}.{}", stream, clip);
}

template <typename Clip>
KeptTensors content(const std::vector<Clip>& clips, const char* layout, StepsDone steps) {
  KeptTensors kept{.metadata = {{"layout", layout},
                                {"steps_done", std::to_string(steps.done)},
                                {"steps", std::to_string(steps.of)}}};
  for (std::size_t i = 0; i < clips.size(); ++i) {
    if (clips[i].video.defined()) kept.tensors[name_of(kVideo, i)] = clips[i].video;
    if (clips[i].audio.defined()) kept.tensors[name_of(kAudio, i)] = clips[i].audio;
  }
  return kept;
}

template <typename Clip>
std::vector<Clip> clips_of(const KeptTensors& kept, std::size_t count) {
  auto find = [&](const char* stream, std::size_t clip) {
    auto found = kept.tensors.find(name_of(stream, clip));
    return found == kept.tensors.end() ? at::Tensor() : found->second;
  };
  std::vector<Clip> clips;
  for (std::size_t i = 0; i < count; ++i)
    clips.push_back({.video = find(kVideo, i), .audio = find(kAudio, i)});
  return clips;
}

}  // namespace

KeptTensors latents_content(const std::vector<ClipLatents>& clips, StepsDone steps) {
  return content(clips, "video [B, C, F, H, W], audio [B, C, L, M], denormalized", steps);
}

KeptTensors latents_content(const std::vector<Latents>& clips, StepsDone steps) {
  return content(clips, "video [B, tokens, C], audio [B, L, C * M], normalized", steps);
}

std::vector<ClipLatents> clips_in(const KeptTensors& kept, std::size_t count) {
  return clips_of<ClipLatents>(kept, count);
}

std::vector<Latents> packed_clips_in(const KeptTensors& kept, std::size_t count) {
  return clips_of<Latents>(kept, count);
}

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps) {
  const KeptTensors file = latents_content(std::vector{latents}, steps);
  weights::write_tensors(path, {file.tensors.rbegin(), file.tensors.rend()}, file.metadata);
}

std::variant<ClipLatents, Latents> read_latents(const std::filesystem::path& path, const Settings& settings) {
  warn_if_unfinished(path);
  const auto tensors = weights::read_tensors(path);
  const auto& v = settings.video;
  const auto& a = settings.audio;
  if (auto video = tensors.find(kVideo); video != tensors.end() && video->second.dim() == 3) {
    return Latents{.video = take(tensors, kVideo, {1, v.tokens(), v.channels}, path),
                   .audio = take(tensors, kAudio, {1, a.length, a.channels * a.mel_bins}, path)};
  }
  ClipLatents clip;
  // One stream alone is enough for what only needs that.
  if (tensors.contains(kVideo) || !tensors.contains(kAudio))
    clip.video = take(tensors, kVideo, {1, v.channels, v.frames, v.height, v.width}, path);
  if (tensors.contains(kAudio))
    clip.audio = take(tensors, kAudio, {1, a.channels, a.length, a.mel_bins}, path);
  return clip;
}

}  // namespace sluice::pipeline
