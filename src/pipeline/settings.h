#pragma once
// What everything left open in a request becomes: schedule, guidance, compute dtype, each with the reason.
// Values only.

#include "pipeline/condition_plan.h"
#include "pipeline/model_set.h"
#include "sampling/guidance.h"
#include "sampling/schedule.h"

#include <sluice/sluice.h>

#include <ATen/core/Tensor.h>

#include <set>
#include <string>
#include <vector>

namespace sluice::pipeline {

struct Choice {  // of `auto`, for -v and the report
  std::string what;
  std::string value;
  std::string reason;
};

struct StageSettings {  // of one denoising
  sampling::VideoLatentShape video;
  double fps = 24;                 // of its frames
  std::int64_t tokens_beside = 0;  // of given frames, behind the clip's own
  sampling::Schedule schedule;
  sampling::Guidance guidance;
  std::set<std::int64_t> stg_blocks;

  std::int64_t tokens() const { return video.tokens() + tokens_beside; }
};

struct Settings {
  Variant variant = Variant::distilled;
  std::vector<StageSettings> stages;  // one, or two: the last one makes the result
  at::ScalarType dtype = at::ScalarType::Float;
  int threads = 1;
  sampling::VideoLatentShape video;  // of the result
  sampling::AudioLatentShape audio;
  ConditionPlan conditions;
  std::vector<Choice> choices;
  std::vector<std::string> warnings;
  std::vector<std::string>
      missing;  // what a run needs that the request does not give: it can be planned, not made
};

// How much larger an upsampler makes a clip, between the stages.
struct UpsamplerScale {
  std::int64_t space = 2;
  std::int64_t time = 1;  // latent frames F become time · F - (time - 1)
};

// What beside the request and its models decides.
struct SettleInputs {
  const GivenMedia& media;
  std::int64_t reference_downscale = 1;  // of the adapter that takes references
  UpsamplerScale upsampler;              // with two stages
};

// `request.frames` is settled.  Error(usage) for what contradicts itself.
Settings settle(const Request& request, const ModelSet& models, const SettleInputs& inputs);

constexpr ltx2::Modalities modalities_of(Streams streams) {
  switch (streams) {
    case Streams::video:
      return ltx2::Modalities::video;
    case Streams::audio:
      return ltx2::Modalities::audio;
    default:
      return ltx2::Modalities::both;
  }
}

// bf16 where the CPU multiplies it and the weights are stored in it, f32 otherwise.
Choice choose_dtype(ComputeDtype asked, const weights::ComponentTable& table);
at::ScalarType scalar_type(const Choice& dtype);

// All cores, but one thread where the products of a step are so small that threads would wait for each other
// longer than they work.
Choice choose_threads(int asked, const ltx2::TransformerConfig& transformer, std::int64_t video_tokens);

// Sets the number of compute threads of the process, 0: all cores; returns it.
int use_threads(int asked);

}  // namespace sluice::pipeline
