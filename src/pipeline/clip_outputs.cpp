#include "pipeline/clip_outputs.h"

#include "base/output_name.h"

#include <fmt/format.h>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;

fs::path with_seed(const fs::path& path, std::uint64_t seed) {
  if (path.empty()) return path;
  const fs::path plain = without_slash(path);
  fs::path name = plain.stem();
  name += fmt::format("-{}", seed);
  name += plain.extension();
  return plain.parent_path() / name;
}

}  // namespace

std::uint64_t clip_seed(const Request& request, std::size_t clip) {
  return request.seed + clip;
}

Outputs clip_outputs(const Outputs& outputs, const Request& request, std::size_t clip) {
  Outputs own = outputs;
  if (request.count == 1) return own;
  const std::uint64_t seed = clip_seed(request, clip);
  for (fs::path* path : {&own.video, &own.wav, &own.frames_dir, &own.latents, &own.trace})
    *path = with_seed(*path, seed);
  return own;
}

std::vector<fs::path> output_files(const Outputs& outputs, const Request& request) {
  std::vector<fs::path> files;
  for (std::size_t clip = 0; clip < static_cast<std::size_t>(request.count); ++clip) {
    const Outputs own = clip_outputs(outputs, request, clip);
    for (const fs::path& path : {own.video, own.wav, own.latents, own.trace})
      if (!path.empty()) files.push_back(path);
  }
  if (!outputs.report.empty()) files.push_back(outputs.report);
  return files;
}

std::vector<fs::path> frame_folders(const Outputs& outputs, const Request& request) {
  std::vector<fs::path> folders;
  if (outputs.frames_dir.empty()) return folders;
  for (std::size_t clip = 0; clip < static_cast<std::size_t>(request.count); ++clip)
    folders.push_back(clip_outputs(outputs, request, clip).frames_dir);
  return folders;
}

std::vector<fs::path> input_files(const Request& request) {
  std::vector<fs::path> files = {request.model, request.text_encoder, request.inject, request.decode_latents,
                                 request.audio};
  auto add = [&](const auto& list) {
    for (const auto& item : list) files.push_back(item.file);
  };
  add(request.images);
  add(request.videos);
  add(request.references);
  add(request.adapters);
  if (request.two_stage) {
    files.push_back(request.two_stage->upsampler);
    add(request.two_stage->adapters);
  }
  return files;
}

}  // namespace sluice::pipeline

namespace sluice {

Outputs outputs_of_clip(const Outputs& outputs, const Request& request, std::size_t clip) {
  return pipeline::clip_outputs(outputs, request, clip);
}

}  // namespace sluice
