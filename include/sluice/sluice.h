#pragma once
// The library's front: a Request becomes a video with sound.  The command line uses nothing else.
//
//   sluice::Request request{.model = "ltx-2.3-22b-distilled.safetensors", .text_encoder = "gemma-3-12b",
//   .prompt = "…"}; sluice::generate(request, {.video = "out.mp4"});
//
// Functions throw sluice::Error and may be called from any thread, one at a time (the number of compute
// threads is a property of the process).  All work of a call is done when it returns.

#include <sluice/error.h>
#include <sluice/progress.h>
#include <sluice/read_options.h>
#include <sluice/units.h>
#include <sluice/version.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Nothing in a checkpoint's tensors tells a distilled model from a dev model.
enum class Variant {
  automatic,  // from the scheduler's config, else from the file's name, else distilled with a warning
  distilled,  // fixed list of 8 sigmas, no guidance
  dev,        // shifted schedule, guidance
};

enum class ComputeDtype { automatic, f32, bf16 };

// Where weights are while a phase computes with them.  Results are the same.
enum class StageFrom {
  automatic,  // what the memory limit allows: in place or in memory what fits, the rest from disk
  memory,     // a component is read once and stays until its phase ends
  disk,       // a few slots of memory through which weights are read again for every pass
  device,     // on the device that computes; with the CPU that is memory
};

enum class DecodeMode {
  automatic,  // stream, in spatial tiles on top (with a warning: they change the picture) where it must be
  stream,     // exact, in memory that does not depend on the clip's length
  whole,      // exact, the clip at once
  tiled,      // the reference's overlapping tiles with blending: changes the picture
};

// How one stream is pushed away from worse predictions; empty values take the variant's default.
struct GuidanceRequest {
  std::optional<double> cfg;       // 1: off
  std::optional<double> stg;       // 0: off
  std::optional<double> modality;  // 1: off
  std::optional<double> rescale;   // 0: off
};

// How a step goes from one sigma to the next.
enum class Sampler {
  euler,
  euler_ancestral,  // Euler with fresh noise in every step but the last
  res_2s,           // second order with fresh noise: the model is evaluated twice a step
};

// A picture, or the frames of a video, that the clip has at `frame`.
struct FrameCondition {
  std::filesystem::path file;
  std::int64_t frame = 0;  // of the clip, counted from 0; negative: from its end, -1 is the last one
  double strength = 1.0;   // 0 … 1: how far what is made is held to it
};

// A clip that an adapter with references (IC-LoRA) takes its subject, structure or style from.
struct ReferenceClip {
  std::filesystem::path file;
  double strength = 1.0;
};

enum class Fit {
  crop,     // scaled until it covers the size, what is over is cut at both sides alike
  pad,      // scaled until it fits inside, black around it
  stretch,  // both sides by themselves
};

struct Adapter {  // LoRA
  std::filesystem::path file;
  double strength = 1.0;
};

struct SecondRange {  // [start, end)
  double start = 0;
  double end = 0;
};

// First at half width and height, then twice that, refined.
struct TwoStageRequest {
  std::filesystem::path upsampler;  // the latent upsampler x2
  double adain = 0;                 // 0 … 1: how far its result is brought to the first stage's statistics
  double tone_map = 0;              // 0 … 1: how far large values are brought in
  std::vector<Adapter> adapters;    // of the second stage beside Request::adapters; a dev model needs one
};

// The streams that are made.
enum class Streams { both, video, audio };

struct Request {
  std::filesystem::path model;         // single file, folder of shards, diffusers folder
  std::filesystem::path text_encoder;  // a Gemma 3 folder; empty: the diffusers folder's own
  std::string prompt;
  std::string negative_prompt;

  std::int64_t width = 768;  // multiples of 32
  std::int64_t height = 512;
  std::int64_t frames = 0;  // 8k + 1; 0: as long as what is given lasts (`audio`, `retake`), else 121
  Rational fps = {24, 1};
  std::uint64_t seed = 42;

  Variant variant = Variant::automatic;
  std::optional<std::int64_t> steps;
  std::vector<double> sigmas;      // without the final 0; used as they stand
  GuidanceRequest guidance;        // of the video
  GuidanceRequest audio_guidance;  // of the sound; empty values take the video's where that one is given
  std::vector<std::int64_t> stg_blocks;
  Sampler sampler = Sampler::euler;

  std::vector<FrameCondition> images;
  std::vector<FrameCondition> videos;
  std::int64_t frames_from = 0;  // the first frame taken of each video; negative: from its end
  Fit fit = Fit::crop;
  std::optional<int>
      image_crf;                // of the H.264 round trip of pictures, 0: none; empty: what the model learned
  std::filesystem::path audio;  // the sound: heard by the model, and in the result as it is
  // Makes these seconds of the one video in `videos` anew; everything else, its sound included, stays.
  std::optional<SecondRange> retake;
  std::vector<ReferenceClip> references;
  // 0 … 1: whether the clip and its references see each other.  As in the reference pipeline a bias of
  // -10000 · (1 - value) on attention scores: anything clearly below 1 hides them.
  double reference_attention = 1.0;
  std::vector<Adapter> adapters;
  std::optional<TwoStageRequest> two_stage;
  Streams streams = Streams::both;
  // Clips with the seeds seed, seed + 1, … that share every reading of the weights.
  std::int64_t count = 1;

  ComputeDtype compute_dtype = ComputeDtype::automatic;
  ReadBackend read_backend = ReadBackend::automatic;  // automatic: weights are used where they lie, mapped
  CachePolicy cache = CachePolicy::automatic;         // drop: after each phase, for mapped weights
  int threads = 0;                                    // 0: as many as there are cores

  StageFrom stage_from = StageFrom::automatic;
  std::optional<std::int64_t> resident_blocks;  // of those staged from disk, how many stay in memory
  // For everything a run causes: anonymous and pinned memory, page cache.  Empty: what is available.
  std::optional<Bytes> memory_limit;
  std::optional<Bytes> attention_budget;  // scratch of an attention; empty: chosen
  DecodeMode decode = DecodeMode::automatic;

  // Values given instead of computed or drawn: a safetensors file with any of video_noise, audio_noise,
  // prompt_embeds, prompt_attention_mask, negative_prompt_embeds, negative_prompt_attention_mask.
  std::filesystem::path inject;

  // Latents that an earlier run left (Outputs::latents, or a file of its work folder): decoded as they are,
  // without text encoder and denoising.
  std::filesystem::path decode_latents;
};

// What a run leaves behind; an empty path leaves it out.  Every file appears under its name only when it is
// complete.
// With Request::count above 1 each name gets the clip's seed before its ending: "out-43.mp4"; one report
// tells of all.
struct Outputs {
  std::filesystem::path video;  // mp4
  bool sound = true;            // false: one stream, the sound is not decoded; the picture is the same
  bool metadata = true;         // how it was made, in the mp4's tags
  std::filesystem::path wav;
  std::filesystem::path frames_dir;  // PNG
  std::filesystem::path latents;     // safetensors: video and audio latents, denormalized
  std::filesystem::path trace;       // safetensors: step_<k>.*, context.*, final.*
  std::filesystem::path report;      // JSON
  bool overwrite = false;

  // What an interrupted or killed run goes on from: contexts, the latents after each step, the sound; removed
  // when everything is made.  Empty: "<first output>.sluice-work" beside the first output.  A folder that
  // holds anything else is never used.
  std::filesystem::path work_dir;
  // Goes on from work_dir (empty: from the folder beside the first output, or any beside it of the same
  // request) to the bytes of an undisturbed run.  Error(usage) if there is none, or naming what differs: all
  // of the request that decides bytes, threads, files, version.  Outputs that the earlier run finished are
  // written again.
  bool resume = false;
};

// The names of clip number 0, 1, … of a request with several.
Outputs outputs_of_clip(const Outputs& outputs, const Request& request, std::size_t clip);

// Makes the video.  Returns the report (JSON), which `outputs.report` gets too.
// Errors by kind: usage, bad_input, corrupt_file, mismatch and does_not_fit before any work; io, non_finite
// and interrupted during it; does_not_fit too where memory is refused.  What was finished is kept in
// Outputs::work_dir.
std::string generate(const Request& request, const Outputs& outputs, Progress* progress = nullptr,
                     const CancelToken* cancel = nullptr);

// Whether a plan says how long each phase takes: then this machine is measured, which computes for less than
// a second and reads 64 MiB of the checkpoint.
enum class Timing { none, measured };

// What the request would need: for each phase where weights are, what is read, memory and time, as JSON;
// where it does not fit, the smallest change that makes it fit.  Reads headers and configs only, but for
// `timing`.
std::string plan(const Request& request, const Outputs& outputs = {}, Timing timing = Timing::none);

// The profile for this machine: what to ask for so that the request fits, as JSON; always answers, or
// Error(does_not_fit) where not even the smallest clip would fit.
std::string recommend(const Request& request);

struct EncodeRequest {
  std::filesystem::path text_encoder;
  std::filesystem::path model;  // empty: hidden states only
  std::string prompt;
  std::filesystem::path output;  // safetensors
  bool hidden_states = false;
  bool overwrite = false;
  ComputeDtype compute_dtype = ComputeDtype::automatic;
  ReadBackend read_backend = ReadBackend::automatic;
  CachePolicy cache = CachePolicy::automatic;
  int threads = 0;
};

// Writes context.video, context.audio and context.mask of the prompt, or its hidden states [1, tokens,
// channels, states] and input_ids [1, tokens].  Returns a summary as JSON.
std::string encode(const EncodeRequest& request, Progress* progress = nullptr,
                   const CancelToken* cancel = nullptr);

// A request as it stands in a video's metadata (see Outputs::metadata), without files and threads.
Request request_from_video(const std::filesystem::path& video);

// What it was made with beside its model, to be given again: the flag, and all of it with name and place.
struct GivenAgain {
  std::string flag;  // "--image"
  std::string text;  // "--image first.png@0:1"
};
std::vector<GivenAgain> files_of_video(const std::filesystem::path& video);

// What a file or folder holds, as JSON: tensors, dtypes, shapes, metadata and model version of a checkpoint
// (any safetensors file, folder or index), or streams and tags of a video.  Headers only.
std::string inspect(const std::filesystem::path& path);

}  // namespace sluice
