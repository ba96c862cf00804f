#include "pipeline/output_check.h"

#include "base/temporary_file.h"
#include "media/encoders.h"
#include "media/png_writer.h"
#include "pipeline/clip_outputs.h"

#include <fmt/format.h>

#include <array>
#include <set>

namespace sluice::pipeline {
namespace {

namespace fs = std::filesystem;

// Containers that people ask for by their ending and that are not written.
void check_ending(const fs::path& video) {
  constexpr std::array<std::string_view, 5> kOthers = {".webm", ".avi", ".mkv", ".gif", ".mov"};
  const std::string ending = video.extension().string();
  if (std::find(kOthers.begin(), kOthers.end(), ending) == kOthers.end()) return;
  throw Error(ErrorKind::usage, fmt::format("{}: videos are written as mp4 only", video.string()),
              fmt::format("-o {}", fs::path(video).replace_extension(".mp4").string()));
}

void check_combinations(const Outputs& outputs, const Request& request) {
  if (outputs.video.empty() && outputs.wav.empty() && outputs.frames_dir.empty() && outputs.latents.empty() &&
      outputs.trace.empty()) {
    throw Error(ErrorKind::usage, "nothing would be written", "add -o out.mp4");
  }
  if (!outputs.sound && !outputs.wav.empty()) {
    throw Error(ErrorKind::usage, "--no-audio and --wav contradict each other", "leave one of them out");
  }
  const bool given = !request.images.empty() || !request.videos.empty() || !request.references.empty() ||
                     !request.audio.empty() || !request.adapters.empty() || request.two_stage;
  if (!request.decode_latents.empty() && given) {
    throw Error(ErrorKind::usage,
                "--decode-latents denoises nothing, so pictures, clips, sounds, adapters and a second stage "
                "would change nothing",
                "leave them out");
  }
  if (!request.decode_latents.empty() && (!outputs.trace.empty() || !request.inject.empty())) {
    throw Error(ErrorKind::usage,
                "--decode-latents denoises nothing, so there is nothing to trace or to inject into",
                "leave out --trace and --inject");
  }
  if (!request.decode_latents.empty() && request.count > 1) {
    throw Error(ErrorKind::usage, "--decode-latents gives one clip, and --count asks for several",
                "leave out one of them");
  }
  if (request.streams == Streams::audio && (!outputs.video.empty() || !outputs.frames_dir.empty())) {
    throw Error(ErrorKind::usage, "--audio-only makes no picture, so there is no video to write",
                "write --wav out.wav instead");
  }
  if (request.streams == Streams::video && !outputs.wav.empty()) {
    throw Error(ErrorKind::usage, "--video-only makes no sound, so there is none to write",
                "leave out --wav, or --video-only");
  }
  if (request.count > 1 && !outputs.trace.empty()) {
    throw Error(ErrorKind::usage, "--trace follows one clip, and --count asks for several",
                "leave out one of them");
  }
  if (request.count > 1 && !request.inject.empty()) {
    throw Error(ErrorKind::usage, "--inject would give every clip of --count the same noise",
                "leave out one of them");
  }
  if (!request.decode_latents.empty() && outputs.resume) {
    throw Error(ErrorKind::usage, "--resume and --decode-latents contradict each other",
                "leave out --resume: --decode-latents goes on from a file");
  }
}

}  // namespace

void check_outputs(const Outputs& outputs, const Request& request) {
  check_combinations(outputs, request);
  if (!outputs.video.empty()) check_ending(outputs.video);
  // What a run that is resumed has made already may be replaced; WorkDir knows what that is.
  const Existing existing = outputs.overwrite || outputs.resume ? Existing::overwrite : Existing::refuse;
  std::set<fs::path> names;
  const std::vector<fs::path> inputs = input_files(request);
  auto check_name = [&](const fs::path& path) {
    refuse_input_as_output(path, inputs);
    if (names.insert(full_name(path)).second) return;
    throw Error(ErrorKind::usage, fmt::format("{}: two outputs have this name", path.string()),
                "give each its own");
  };
  const std::vector<fs::path> folders = frame_folders(outputs, request);
  for (const fs::path& path : output_files(outputs, request)) {
    check_target(path, existing);
    check_name(path);
    for (const fs::path& folder : folders) {
      if (!lies_in(full_name(path), full_name(folder))) continue;
      throw Error(ErrorKind::usage, fmt::format("{}: lies in the folder of the frames", path.string()),
                  "give it another place");
    }
  }
  for (const fs::path& folder : folders) {
    media::check_frame_folder(folder, existing);
    check_name(folder);
    for (const fs::path& input : inputs) {
      if (input.empty() || !lies_in(full_name(input), full_name(folder))) continue;
      throw Error(ErrorKind::usage,
                  fmt::format("{}: the frames would be written over what is read, {}", folder.string(),
                              input.string()),
                  "give --frames-dir another folder");
    }
  }
  if (!outputs.video.empty()) media::check_encoders();
}

}  // namespace sluice::pipeline
