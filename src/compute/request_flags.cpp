#include "compute/request_flags.h"

#include "cli/parse_word.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <limits>
#include <utility>
#include <vector>

namespace sluice::compute {
namespace {

using cli::parse_word;

constexpr const char* kGuidance = "Guidance (distilled models: off)";

template <typename T>
std::vector<T> parse_list(const char* flag, const std::string& text) {
  std::vector<T> values;
  std::string_view rest = text;
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    T value{};
    auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), value);
    if (error != std::errc() || end != item.data() + item.size()) {
      throw Error(ErrorKind::usage, fmt::format("{} '{}' is no list of numbers", flag, text),
                  "write it like 1.0,0.9,0.5");
    }
    values.push_back(value);
    if (item.size() == rest.size()) return values;
    rest.remove_prefix(item.size() + 1);
  }
}

// CLI11 would wrap -1 and cut what is too large.
std::uint64_t parse_seed(const std::string& text) {
  std::uint64_t seed = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
  if (error == std::errc() && end == text.data() + text.size()) return seed;
  throw Error(ErrorKind::usage, fmt::format("--seed '{}' is no whole number of 64 bits", text),
              fmt::format("give a number from 0 to {}", std::numeric_limits<std::uint64_t>::max()));
}

Variant parse_variant(const std::string& text) {
  return parse_word<Variant>("--variant", text,
                             std::array{std::pair{std::string_view("auto"), Variant::automatic},
                                        std::pair{std::string_view("distilled"), Variant::distilled},
                                        std::pair{std::string_view("dev"), Variant::dev}});
}

void add_scales(CLI::App& command, GuidanceRequest& both, GuidanceRequest& sound) {
  auto add = [&](const std::string& name, std::optional<double>& video, std::optional<double>& audio,
                 const char* what, const char* defaults, const char* off) {
    command
        .add_option(
            "--" + name, video,
            fmt::format("{} ({}; {}: off); of the sound too, unless it has its own", what, defaults, off))
        ->type_name("X")
        ->group(kGuidance);
    command.add_option("--audio-" + name, audio, fmt::format("the sound's own --{}", name))
        ->type_name("X")
        ->group(kGuidance);
  };
  add("guidance", both.cfg, sound.cfg, "away from the negative prompt", "dev: 3, sound 7", "1");
  add("stg", both.stg, sound.stg, "away from weaker blocks, spatio-temporal", "dev: 1", "0");
  add("modality-guidance", both.modality, sound.modality, "away from picture and sound made apart", "dev: 3",
      "1");
  add("rescale", both.rescale, sound.rescale, "how far the guided result gets its spread back", "dev: 0.7",
      "0");
}

}  // namespace

void WeightFlags::add_to(CLI::App& command, const char* group) {
  auto* backend = command.add_option(
      "--read-backend", backend_,
      "auto or mmap (weights are used where they lie); pread, direct or uring (copied to memory)");
  auto* cache = command.add_option(
      "--cache", cache_,
      "the page cache: auto, keep, drop (after each phase what it brought in is let go) or prefetch");
  for (CLI::Option* option : {backend, cache}) {
    option->type_name("WORD")->capture_default_str();
    if (group != nullptr) option->group(group);
  }
}

void WeightFlags::apply(ReadBackend& backend, CachePolicy& cache) const {
  backend = parse_read_backend(backend_);
  cache = parse_cache_policy(cache_);
}

void RequestFlags::add_to(CLI::App& command) {
  command_ = &command;
  const char* inputs = "Input";
  command
      .add_option("--model", values_.model, "LTX-2.3 checkpoint: file, folder of shards, or diffusers folder")
      ->required()
      ->type_name("PATH")
      ->group(inputs);
  command
      .add_option("--text-encoder", values_.text_encoder,
                  "folder of the Gemma 3 text encoder (default: the diffusers folder's own)")
      ->type_name("FOLDER")
      ->group(inputs);
  command.add_option("--prompt", values_.prompt, "what to show and to hear")->group(inputs);
  command
      .add_option("--negative-prompt", values_.negative_prompt,
                  "what guidance leads away from (default: the empty text)")
      ->group(inputs);
  command.add_option("--from", from_, "take the request from a video's metadata; other flags override it")
      ->type_name("FILE")
      ->group(inputs);
  command
      .add_option("--inject", values_.inject,
                  "safetensors with noise or prompt embeddings to use instead of drawing or computing")
      ->type_name("FILE")
      ->group(inputs);
  command
      .add_option("--decode-latents", values_.decode_latents,
                  "decode these latents; no text encoder, no denoising")
      ->type_name("FILE")
      ->group(inputs);

  const char* clip = "Clip";
  command.add_option("--width", values_.width, "pixels, a multiple of 32 (--two-stage: of 64)")
      ->type_name("N")
      ->capture_default_str()
      ->group(clip);
  command.add_option("--height", values_.height, "pixels, a multiple of 32 (--two-stage: of 64)")
      ->type_name("N")
      ->capture_default_str()
      ->group(clip);
  command
      .add_option("--frames", values_.frames,
                  "8k + 1 (default 121, or as long as --audio or what is retaken)")
      ->type_name("N")
      ->group(clip);
  command.add_option("--fps", fps_, "24, 23.976, 30000/1001, … (default 24)")->type_name("RATE")->group(clip);
  command.add_option("--seed", seed_, "of all random numbers; they are those of PyTorch's CPU generator")
      ->type_name("N")
      ->capture_default_str()
      ->group(clip);

  given_.add_files_to(command);

  const char* sampling = "Sampling";
  command
      .add_option("--variant", variant_,
                  "auto, distilled (8 fixed sigmas, no guidance) or dev (shifted schedule, guidance)")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(sampling);
  auto* steps = command.add_option("--steps", values_.steps, "steps of the dev schedule (default 30)")
                    ->type_name("N")
                    ->group(sampling);
  command
      .add_option("--sigmas", sigmas_,
                  "the sigmas themselves, falling, without the final 0, used as they stand")
      ->excludes(steps)
      ->type_name("A,B,C")
      ->group(sampling);
  given_.add_modes_to(command);
  add_scales(command, guidance_, audio_guidance_);
  command.add_option("--stg-blocks", stg_blocks_, "blocks that --stg perturbs (default 28)")
      ->type_name("I,J")
      ->group(kGuidance);

  memory_.add_to(command);
  const char* machine = "Machine";
  command.add_option("--compute-dtype", dtype_, "auto, f32 or bf16")
      ->type_name("WORD")
      ->capture_default_str()
      ->group(machine);
  reading_.add_to(command, machine);
  command
      .add_option("--threads", values_.threads,
                  "compute threads (default: all cores); results agree to rounding between counts")
      ->type_name("N")
      ->group(machine);
}

Request RequestFlags::request() const {
  Request request = from_.empty() ? Request{} : request_from_video(from_);
  given_.apply(request);
  require_files_again();
  request.model = values_.model;
  request.text_encoder = values_.text_encoder;
  request.inject = values_.inject;
  request.decode_latents = values_.decode_latents;
  if (given("--prompt")) request.prompt = values_.prompt;
  if (given("--negative-prompt")) request.negative_prompt = values_.negative_prompt;
  if (given("--width")) request.width = values_.width;
  if (given("--height")) request.height = values_.height;
  if (given("--frames")) {
    if (values_.frames == 0) {  // to the library that means: not given
      throw Error(ErrorKind::usage, "--frames 0 is not 8k+1", "use 1 or more");
    }
    request.frames = values_.frames;
  }
  if (given("--fps")) request.fps = parse_frame_rate(fps_);
  if (given("--seed")) request.seed = parse_seed(seed_);
  if (given("--variant")) request.variant = parse_variant(variant_);
  if (given("--steps")) {
    request.steps = values_.steps;
    request.sigmas.clear();
  }
  if (given("--sigmas")) request.sigmas = parse_list<double>("--sigmas", sigmas_);
  if (given("--stg-blocks")) request.stg_blocks = parse_list<std::int64_t>("--stg-blocks", stg_blocks_);
  if (given("--compute-dtype")) request.compute_dtype = parse_dtype(dtype_);
  reading_.apply(request.read_backend, request.cache);
  memory_.apply(request);
  if (given("--threads")) request.threads = values_.threads;
  if (request.threads < 0 || request.threads > 1024) {
    throw Error(ErrorKind::usage, fmt::format("--threads {} is impossible", request.threads),
                "give a count between 1 and 1024");
  }
  auto override_scales = [](GuidanceRequest& into, const GuidanceRequest& given) {
    if (given.cfg) into.cfg = given.cfg;
    if (given.stg) into.stg = given.stg;
    if (given.modality) into.modality = given.modality;
    if (given.rescale) into.rescale = given.rescale;
  };
  override_scales(request.guidance, guidance_);
  override_scales(request.audio_guidance, audio_guidance_);
  return request;
}

// A video's metadata tells which files it was made with, but not where they are.
void RequestFlags::require_files_again() const {
  if (from_.empty()) return;
  for (const auto& [flag, text] : files_of_video(from_)) {
    if (given(flag.c_str())) continue;
    throw Error(ErrorKind::usage,
                fmt::format("{} was made with '{}', which has to be given again", from_.string(), text),
                fmt::format("add {}", text));
  }
}

ComputeDtype parse_dtype(const std::string& text) {
  return parse_word<ComputeDtype>("--compute-dtype", text,
                                  std::array{std::pair{std::string_view("auto"), ComputeDtype::automatic},
                                             std::pair{std::string_view("f32"), ComputeDtype::f32},
                                             std::pair{std::string_view("bf16"), ComputeDtype::bf16}});
}

}  // namespace sluice::compute
