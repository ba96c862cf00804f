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

KeptTensors content(const at::Tensor& video, const at::Tensor& audio, const char* layout, StepsDone steps) {
  return {.tensors = {{kVideo, video}, {kAudio, audio}},
          .metadata = {{"layout", layout},
                       {"steps_done", std::to_string(steps.done)},
                       {"steps", std::to_string(steps.of)}}};
}

}  // namespace

KeptTensors latents_content(const ClipLatents& latents, StepsDone steps) {
  return content(latents.video, latents.audio, "video [B, C, F, H, W], audio [B, C, L, M], denormalized",
                 steps);
}

KeptTensors latents_content(const Latents& latents, StepsDone steps) {
  return content(latents.video, latents.audio, "video [B, tokens, C], audio [B, L, C * M], normalized",
                 steps);
}

void write_latents(const std::filesystem::path& path, const ClipLatents& latents, StepsDone steps) {
  const KeptTensors file = latents_content(latents, steps);
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
  return ClipLatents{.video = take(tensors, kVideo, {1, v.channels, v.frames, v.height, v.width}, path),
                     .audio = take(tensors, kAudio, {1, a.channels, a.length, a.mel_bins}, path)};
}

}  // namespace sluice::pipeline
