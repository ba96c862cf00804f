#pragma once
// What everything left open in a request becomes: schedule, guidance, compute dtype, each with the reason.
// Values only.

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

struct Settings {
  Variant variant = Variant::distilled;
  sampling::Schedule schedule;
  sampling::Guidance guidance;
  std::set<std::int64_t> stg_blocks;
  at::ScalarType dtype = at::ScalarType::Float;
  int threads = 1;
  sampling::VideoLatentShape video;
  sampling::AudioLatentShape audio;
  std::vector<Choice> choices;
  std::vector<std::string> warnings;
};

// Error(usage) for what contradicts itself.
Settings settle(const Request& request, const ModelSet& models);

// bf16 where the CPU multiplies it and the weights are stored in it, f32 otherwise.
Choice choose_dtype(ComputeDtype asked, const weights::ComponentTable& table);
at::ScalarType scalar_type(const Choice& dtype);

// All cores, but one thread where the products of a step are so small that threads would wait for each other
// longer than they work.
Choice choose_threads(int asked, const ltx2::TransformerConfig& transformer, std::int64_t video_tokens);

// Sets the number of compute threads of the process, 0: all cores; returns it.
int use_threads(int asked);

}  // namespace sluice::pipeline
