#include "pipeline/condition_plan.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace sluice::pipeline {
namespace {

void check_share(std::string_view flag, const std::string& where, double value) {
  if (value >= 0 && value <= 1) return;  // false for NaN
  throw Error(ErrorKind::usage,
              fmt::format("{}{}: {} is not between 0 and 1", flag, where.empty() ? "" : " " + where, value),
              "1 holds fully, 0 not at all");
}

class Planner {
 public:
  Planner(const Request& request, const GivenMedia& media, const ConditionLimits& limits,
          std::vector<std::string>& warnings)
      : request_(request), media_(media), limits_(limits), warnings_(warnings) {}

  ConditionPlan run() {
    for (std::size_t i = 0; i < request_.images.size(); ++i) image(request_.images[i]);
    for (std::size_t i = 0; i < request_.videos.size(); ++i) video(request_.videos[i], media_.videos[i]);
    if (request_.retake) retake();
    for (std::size_t i = 0; i < request_.references.size(); ++i)
      reference(request_.references[i], media_.references[i]);
    if (media_.sound) sound();
    warn_of_one_place();
    return std::move(plan_);
  }

 private:
  std::int64_t place(std::string_view flag, const FrameCondition& given) const {
    check_share(flag, given.file.string(), given.strength);
    const std::int64_t frames = request_.frames;
    if (given.frame < -frames || given.frame >= frames) {
      throw Error(
          ErrorKind::usage,
          fmt::format("{} {}@{}: the clip has the frames 0 to {}", flag, given.file.string(), given.frame,
                      frames - 1),
          fmt::format("give a frame from {} to {}: negative ones count from the end", -frames, frames - 1));
    }
    return given.frame < 0 ? given.frame + frames : given.frame;
  }

  // Those beside the grid add up; in the grid's first latents the last one is seen.
  void warn_of_one_place() {
    const PlannedFrames* before = nullptr;
    for (const PlannedFrames& frames : plan_.frames) {
      if (frames.beside()) continue;
      if (before) {
        warnings_.push_back(fmt::format("{} and {} both begin at frame 0: there the later one counts",
                                        before->file.string(), frames.file.string()));
      }
      before = &frames;
    }
  }

  void image(const FrameCondition& given) {
    plan_.frames.push_back({.source = FrameSource::image,
                            .file = given.file,
                            .frame = place("--image", given),
                            .strength = given.strength});
  }

  // Frames that a condition can have: 8k + 1 of what there is and what the clip has room for.
  std::int64_t trimmed(const std::filesystem::path& file, std::int64_t there, std::int64_t room) {
    const std::int64_t step = limits_.compression.frames;
    const std::int64_t most = std::min(there, room);
    const std::int64_t count = (most - 1) / step * step + 1;
    if (count < there) {
      warnings_.push_back(fmt::format("{}: of {} frames {} are used ({})", file.string(), there, count,
                                      there > room && room - count < step
                                          ? fmt::format("the clip has room for {}", room)
                                          : fmt::format("a count of {}k+1 is needed", step)));
    }
    return count;
  }

  void video(const FrameCondition& given, const media::ReadableVideo& found) {
    const std::int64_t frame = place("--video", given);
    std::int64_t first = request_.frames_from;
    if (first < -found.frames || first >= found.frames) {
      throw Error(ErrorKind::usage,
                  fmt::format("--frames-from {}: {} has {} frames at {} a second", first, given.file.string(),
                              found.frames, to_string(request_.fps)),
                  fmt::format("give a number from {} to {}: negative ones count from its end", -found.frames,
                              found.frames - 1));
    }
    if (first < 0) first += found.frames;
    plan_.frames.push_back({.source = FrameSource::video,
                            .file = given.file,
                            .frame = frame,
                            .first = first,
                            .count = trimmed(given.file, found.frames - first, request_.frames - frame),
                            .strength = given.strength});
    if (found.has_sound && !request_.retake && request_.audio.empty() && request_.streams == Streams::both &&
        !std::exchange(told_, true)) {
      warnings_.push_back(fmt::format("{}: its sound is not used (--audio {} would)", given.file.string(),
                                      given.file.string()));
    }
  }

  void retake() {
    const SecondRange& range = *request_.retake;
    if (request_.videos.size() != 1 || !request_.images.empty()) {
      throw Error(ErrorKind::usage,
                  fmt::format("--retake takes one --video and no --image, not {} and {}",
                              request_.videos.size(), request_.images.size()),
                  "name the clip to be changed with --video");
    }
    const PlannedFrames& clip = plan_.frames.front();
    const double fps = request_.fps.value(), lasts = static_cast<double>(request_.frames) / fps;
    if (!(range.start >= 0 && range.start < range.end && range.start < lasts)) {
      throw Error(
          ErrorKind::usage,
          fmt::format("--retake {}:{} is no part of a clip of {:.3f} s", range.start, range.end, lasts),
          fmt::format("give two times from 0 to {:.3f}, the smaller one first", lasts));
    }
    if (range.end > lasts + 1 / fps) {
      warnings_.push_back(
          fmt::format("--retake {}:{}: the clip ends at {:.3f} s, and so does what is made anew", range.start,
                      range.end, lasts));
    }
    if (clip.frame != 0 || clip.strength != 1.0 || clip.count != request_.frames) {
      throw Error(ErrorKind::usage,
                  fmt::format("--retake keeps what is not made anew, but {} gives {} frames at frame {} and "
                              "strength {} for {} frames",
                              clip.file.string(), clip.count, clip.frame, clip.strength, request_.frames),
                  "leave out --frames, or ask for as many as the video has; without @frame and strength");
    }
    plan_.retaken_video = video_latents(range, fps);
    if (!media_.sound && media_.retaken) plan_.retaken_audio = audio_latents(range);
    if (!media_.sound && !media_.retaken)
      warnings_.push_back(fmt::format("{}: it has no sound, so all of it is made", clip.file.string()));
  }

  // Latents of which a frame lies in the range: the first stands for one frame, the others for `frames` each.
  Range video_latents(const SecondRange& range, double fps) const {
    const std::int64_t step = limits_.compression.frames;
    const auto first = static_cast<std::int64_t>(std::floor(range.start * fps + 1e-9));
    const auto behind = std::min<std::int64_t>(
        request_.frames,
        std::max<std::int64_t>(first + 1, static_cast<std::int64_t>(std::ceil(range.end * fps - 1e-9))));
    auto latent = [&](std::int64_t frame) { return (frame + step - 1) / step; };
    return {latent(first), latent(behind - 1) + 1};
  }

  Range audio_latents(const SecondRange& range) const {
    const auto& rate = limits_.audio_rate;
    const double a_second =
        static_cast<double>(rate.sample_rate) / static_cast<double>(rate.hop_length * rate.downsample);
    const auto begin = static_cast<std::int64_t>(std::floor(range.start * a_second + 1e-9));
    const auto end = static_cast<std::int64_t>(std::ceil(range.end * a_second - 1e-9));
    return {std::min(begin, limits_.audio_length - 1), std::clamp(end, begin + 1, limits_.audio_length)};
  }

  void reference(const ReferenceClip& given, const media::ReadableVideo& found) {
    check_share("--reference", given.file.string(), given.strength);
    plan_.frames.push_back({.source = FrameSource::reference,
                            .file = given.file,
                            .count = trimmed(given.file, found.frames, request_.frames),
                            .strength = given.strength,
                            .downscale = limits_.reference_downscale});
  }

  void sound() {
    plan_.sound = true;
    const double clip = static_cast<double>(request_.frames) / request_.fps.value();
    const double given = media_.sound->seconds();
    const double frame = 1 / request_.fps.value();
    if (given > clip + frame) {
      warnings_.push_back(fmt::format("{}: {:.2f} s of sound are cut to the clip's {:.2f} s",
                                      request_.audio.string(), given, clip));
    } else if (given < clip - frame) {
      warnings_.push_back(fmt::format("{}: {:.2f} s of sound, silence behind them to the clip's {:.2f} s",
                                      request_.audio.string(), given, clip));
    }
  }

  const Request& request_;
  const GivenMedia& media_;
  const ConditionLimits& limits_;
  std::vector<std::string>& warnings_;
  ConditionPlan plan_;
  bool told_ = false;
};

void check_combinations(const Request& request) {
  auto refuse = [](const std::string& what, const std::string& hint) {
    throw Error(ErrorKind::usage, what, hint);
  };
  const bool frames = !request.images.empty() || !request.videos.empty() || !request.references.empty();
  if (request.streams == Streams::audio && (frames || request.two_stage))
    refuse("--audio-only makes no picture, so none can be given and there is no second stage",
           "leave out --image, --video, --reference and --two-stage");
  if (request.streams == Streams::audio && !request.audio.empty())
    refuse("--audio-only and --audio contradict each other: nothing would be made", "leave one of them out");
  if (request.streams == Streams::video && !request.audio.empty())
    refuse("--video-only leaves the sound out, so the model cannot hear --audio", "leave one of them out");
  if (request.frames_from != 0 && request.videos.empty())
    refuse("--frames-from is about the frames of a --video, and none is given", "add --video FILE");
}

}  // namespace

sampling::VideoLatentShape latents_of(const PlannedFrames& frames, const sampling::VideoLatentShape& stage,
                                      const sampling::VideoCompression& compression) {
  return {.channels = stage.channels,
          .frames = sampling::latent_frames(frames.count, compression),
          .height = stage.height / frames.downscale,
          .width = stage.width / frames.downscale};
}

std::int64_t ConditionPlan::tokens_beside(const sampling::VideoLatentShape& stage,
                                          const sampling::VideoCompression& compression) const {
  std::int64_t tokens = 0;
  for (const PlannedFrames& given : frames)
    if (given.beside()) tokens += latents_of(given, stage, compression).tokens();
  return tokens;
}

ConditionPlan plan_conditions(const Request& request, const GivenMedia& media, const ConditionLimits& limits,
                              std::vector<std::string>& warnings) {
  check_combinations(request);
  check_share("--reference-attention", "", request.reference_attention);
  ConditionPlan plan = Planner(request, media, limits, warnings).run();
  const bool shaped = request.fit != Fit::crop || request.image_crf;
  if (!plan.any_frames() && shaped)
    warnings.emplace_back("--fit and --image-crf are about given frames, and none are given");
  if (request.references.empty() && request.reference_attention != 1)
    warnings.emplace_back("--reference-attention is about references, and none are given");
  return plan;
}

}  // namespace sluice::pipeline
