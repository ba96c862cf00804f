#include "compute/given_flags.h"

#include "cli/parse_word.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

namespace sluice::compute {
namespace {

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace

FrameCondition parse_frame_condition(std::string_view flag, const std::string& text) {
  FrameCondition condition{.file = text};
  if (exists(text)) return condition;
  const std::size_t at = text.rfind('@');
  if (text.empty() || at == 0)
    throw Error(ErrorKind::usage, fmt::format("{} '{}' names no file", flag, text),
                "write it like picture.png");
  if (at == std::string::npos) return condition;
  const std::string_view place = std::string_view(text).substr(at + 1);
  const std::size_t colon = place.find(':');
  const auto frame = number<std::int64_t>(place.substr(0, colon));
  const auto strength =
      colon == std::string_view::npos ? std::optional(1.0) : number<double>(place.substr(colon + 1));
  if (!frame || !strength) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}': '{}' is no frame and strength", flag, text, place),
                "write it like picture.png@0 or picture.png@-1:0.8");
  }
  return {.file = text.substr(0, at), .frame = *frame, .strength = *strength};
}

Adapter parse_adapter(std::string_view flag, const std::string& text) {
  Adapter adapter{.file = text};
  const std::size_t colon = text.rfind(':');
  if (colon != std::string::npos && !exists(text)) {
    if (const auto strength = number<double>(std::string_view(text).substr(colon + 1)))
      adapter = {.file = text.substr(0, colon), .strength = *strength};
  }
  if (adapter.file.empty()) {
    throw Error(ErrorKind::usage, fmt::format("{} '{}' names no file", flag, text),
                "write it like file or file:0.8");
  }
  return adapter;
}

SecondRange parse_second_range(std::string_view flag, const std::string& text) {
  const std::size_t colon = text.find(':');
  const auto start = number<double>(std::string_view(text).substr(0, colon));
  const auto end =
      colon == std::string::npos ? std::nullopt : number<double>(std::string_view(text).substr(colon + 1));
  if (start && end) return {*start, *end};
  throw Error(ErrorKind::usage, fmt::format("{} '{}' is no START:END in seconds", flag, text),
              "write it like 1.5:3");
}

void GivenFlags::add_files_to(CLI::App& command) {
  command_ = &command;
  constexpr const char* kPlace = "FILE[@FRAME[:STRENGTH]]";
  constexpr const char* kStrength = "FILE[:STRENGTH]";
  const char* group = "Given pictures, videos and sound (docs/conditions.md has an example of each)";
  // One value each: a shell's "*.png" behind one flag would put every picture at frame 0.
  auto repeatable = [&](const char* flag, std::vector<std::string>& values, const char* type,
                        const char* text) {
    return command.add_option(flag, values, text)->allow_extra_args(false)->type_name(type)->group(group);
  };
  repeatable("--image", images_, kPlace,
             "a picture that the clip has at a frame (default 0; -1: the last); strength 0 to 1 (default 1); "
             "repeatable");
  repeatable("--video", videos_, kPlace, "frames that the clip has from a frame on; repeatable");
  command
      .add_option("--frames-from", frames_from_,
                  "the first frame taken of each --video; negative: from its end (-9: its last nine)")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  command.add_option("--fit", fit_, "how another aspect becomes the clip's: crop, pad (black) or stretch")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--image-crf", image_crf_,
                  "H.264 quality of the round trip that pictures take first, as the model learned them "
                  "(default 33; 0: none)")
      ->type_name("N")
      ->group(group);
  command
      .add_option(
          "--audio", audio_,
          "the sound: the model hears it, and it is in the result unchanged (WAV, FLAC, MP3, …, or the "
          "sound of a video)")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--retake", retake_,
                  "seconds of the one --video that are made anew; everything else of it stays")
      ->type_name("START:END")
      ->group(group);
  repeatable("--reference", references_, kStrength,
             "a clip that an adapter with references (IC-LoRA) follows; repeatable");
  command
      .add_option("--reference-attention", reference_attention_,
                  "0 to 1: whether clip and references see each other; clearly below 1 they do not")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);

  group = "Adapters and stages";
  repeatable("--lora", adapters_, kStrength,
             "an adapter beside the weights, whatever they are stored as; no file changes; repeatable");
  command
      .add_flag("--two-stage", two_stage_,
                "make it at half size, upsample the latents, refine in three steps")
      ->group(group);
  command.add_option("--upsampler", stages_.upsampler, "the latent upsampler x2")
      ->type_name("FILE")
      ->group(group);
  repeatable("--stage-2-lora", stage_2_adapters_, kStrength,
             "an adapter of the second stage alone; a dev model needs the distilled one; repeatable");
  command
      .add_option("--adain", stages_.adain,
                  "0 to 1: how far upsampled latents get the first stage's statistics")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--tone-map", stages_.tone_map,
                  "0 to 1: how far large values of upsampled latents are brought in")
      ->type_name("X")
      ->capture_default_str()
      ->group(group);
}

void GivenFlags::add_modes_to(CLI::App& command) {
  const char* group = "Sampling";
  command
      .add_option(
          "--sampler", sampler_,
          "euler, euler_ancestral (fresh noise in every step) or res_2s (second order, two evaluations a "
          "step)")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--count", count_,
          "so many clips, with the seeds seed, seed + 1, …, from one reading of the weights; names get "
          "the seed: out-43.mp4")
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  auto* video_only = command.add_flag(
      "--video-only", video_only_,
      "make the picture alone, without the sound's half of the model: another picture than with it");
  video_only->group(group);
  command
      .add_flag("--audio-only", audio_only_,
                "make the sound alone, without the picture's half of the model: write it with --wav")
      ->excludes(video_only)
      ->group(group);
}

void GivenFlags::apply(Request& request) const {
  for (const std::string& text : images_) request.images.push_back(parse_frame_condition("--image", text));
  for (const std::string& text : videos_) request.videos.push_back(parse_frame_condition("--video", text));
  for (const std::string& text : references_) {
    const auto [file, strength] = parse_adapter("--reference", text);
    request.references.push_back({.file = file, .strength = strength});
  }
  for (const std::string& text : adapters_) request.adapters.push_back(parse_adapter("--lora", text));
  if (given("--frames-from")) request.frames_from = frames_from_;
  if (given("--fit")) {
    request.fit = cli::parse_word<Fit>("--fit", fit_,
                                       std::array{std::pair{std::string_view("crop"), Fit::crop},
                                                  std::pair{std::string_view("pad"), Fit::pad},
                                                  std::pair{std::string_view("stretch"), Fit::stretch}});
  }
  if (given("--image-crf")) request.image_crf = image_crf_;
  if (given("--audio")) request.audio = audio_;
  if (given("--retake")) request.retake = parse_second_range("--retake", retake_);
  if (given("--reference-attention")) request.reference_attention = reference_attention_;
  if (given("--sampler")) {
    request.sampler = cli::parse_word<Sampler>(
        "--sampler", sampler_,
        std::array{std::pair{std::string_view("euler"), Sampler::euler},
                   std::pair{std::string_view("euler_ancestral"), Sampler::euler_ancestral},
                   std::pair{std::string_view("res_2s"), Sampler::res_2s}});
  }
  if (audio_only_) request.streams = Streams::audio;
  if (video_only_) request.streams = Streams::video;
  if (given("--count")) request.count = count_;
  apply_stages(request);
}

void GivenFlags::apply_stages(Request& request) const {
  if (two_stage_ && !request.two_stage) request.two_stage.emplace();
  for (const char* flag : {"--upsampler", "--stage-2-lora", "--adain", "--tone-map"}) {
    if (request.two_stage || !given(flag)) continue;
    throw Error(ErrorKind::usage, fmt::format("{} is about two stages", flag), "add --two-stage");
  }
  if (!request.two_stage) return;
  TwoStageRequest& stages = *request.two_stage;
  stages.upsampler = stages_.upsampler;
  if (two_stage_ && stages.upsampler.empty()) {
    throw Error(ErrorKind::usage, "--two-stage needs the latent upsampler",
                "add --upsampler ltx-2.3-spatial-upscaler-x2-1.1.safetensors");
  }
  if (given("--adain")) stages.adain = stages_.adain;
  if (given("--tone-map")) stages.tone_map = stages_.tone_map;
  for (const std::string& text : stage_2_adapters_)
    stages.adapters.push_back(parse_adapter("--stage-2-lora", text));
}

}  // namespace sluice::compute
