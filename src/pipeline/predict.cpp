#include "pipeline/predict.h"

#include "bytes/format/checkpoint_state.h"
#include "bytes/read/page_cache.h"
#include "pipeline/text_phase.h"
#include "pipeline/work.h"

#include <algorithm>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

kernels::MatrixFormat format_of(const weights::ComponentTable& table) {
  if (table.quantized.empty()) return kernels::MatrixFormat::dense;
  return table.quantized.begin()->second.format == weights::QuantFormat::fp8 ? kernels::MatrixFormat::fp8
                                                                             : kernels::MatrixFormat::nf4;
}

// Share of the files that need not come from the disk.
double cached_share(const Checkpoint& checkpoint) {
  Bytes cached = 0, size = 0;
  for (const File& file : CheckpointAccess::state(checkpoint).files) cached += bytes::cached_bytes(file);
  for (const Shard& shard : checkpoint.shards()) size += shard.file_size;
  return size == 0 ? 1 : static_cast<double>(cached) / static_cast<double>(size);
}

// What is measured by itself runs on warm weights and warm results; inside a phase both come from memory.
// Measured over phases of every kind: 1.4 to 1.6.
constexpr double kInsideAPhase = 1.45;
// The pieces of a wave widen and reorder the weights anew.
constexpr double kSoundWeightPasses = 30;

class Prediction {
 public:
  Prediction(const RunPlan& plan, const RunInputs& inputs, MachineSpeed& speed)
      : plan_(plan), inputs_(inputs), models_(inputs.models), speed_(speed) {}

  double text() {
    double seconds = 0;
    for (std::int64_t tokens : inputs_.prompt_tokens) {
      if (inputs_.encoder) {
        const auto& config = inputs_.encoder->model->config;
        const auto layers = static_cast<double>(config.layers.size());
        seconds += layers * computing(gemma_layer_work(config, tokens), format_of(inputs_.encoder->table));
      }
      seconds += computing(connectors_work(models_.connectors->config(), tokens, kTextTokens),
                           format_of(models_.table(ComponentKind::connectors)));
    }
    return overlapped(seconds, reading(*plan_.find("text")));
  }

  double denoise(const PhasePlan& phase, std::size_t index) {
    const Settings& settings = inputs_.settings;
    const StageSettings& stage = settings.stages[index];
    const auto& config = models_.transformer->config();
    const ltx2::Modalities modalities = models_.transformer->modalities();
    const auto passes =
        static_cast<double>(inputs_.request.count) * sampling::needed_passes(stage.guidance).forward_passes();
    const double block =
        passes * computing(block_work(config, {.video = has_video(modalities) ? stage.tokens() : 0,
                                               .audio = has_audio(modalities) ? settings.audio.length : 0,
                                               .text = kTextTokens}),
                           format_of(models_.table(ComponentKind::transformer)));
    const double step = block * static_cast<double>(config.num_layers);
    const ComponentStaging& staging = phase.staging.front();
    const double first = overlapped(step, reading(phase));
    // The blocks that stay hide nothing of the others' reading.
    const double streamed = share(staging.bytes_again, staging.bytes_once) * step;
    const double again = overlapped(streamed, reading(staging, staging.bytes_again)) + step - streamed;
    return first + static_cast<double>(phase.passes - 1) * again;
  }

  // An encoder takes what a decoder does, but for its last stage; frames of a second clip in proportion.
  double condition(const PhasePlan& phase, std::size_t index) {
    const StageSettings& stage = inputs_.settings.stages[index];
    double seconds = 0;
    for (const PlannedFrames& frames : inputs_.settings.conditions.frames) {
      const auto shape = latents_of(frames, stage.video, models_.compression());
      seconds += computing(
          video_decode_work(models_.video_decoder->config(), shape.frames, shape.height, shape.width),
          kernels::MatrixFormat::dense);
    }
    return overlapped(seconds, reading(phase));
  }

  double upsample(const PhasePlan& phase) {
    const auto &from = inputs_.settings.stages.front().video, &to = inputs_.settings.video;
    const ltx2::UpsamplerConfig& config = inputs_.upsampler->model->config();
    const auto width = static_cast<double>(config.mid_channels);
    const auto blocks = static_cast<double>(2 * config.blocks);
    Work work;
    work.conv3d = 27 * width * width * blocks * static_cast<double>(from.tokens() + to.tokens());
    const double seconds = computing(work, kernels::MatrixFormat::dense);
    return static_cast<double>(inputs_.request.count) * overlapped(seconds, reading(phase));
  }

  double sound() {
    const Work work = sound_decode_work(models_.audio_decoder->config(), models_.vocoder->config(),
                                        inputs_.settings.audio.length);
    const PhasePlan& phase = *plan_.find("decode sound");
    const double weights = kSoundWeightPasses * static_cast<double>(phase.bytes_read()) * speed_.stream();
    return overlapped(computing(work, kernels::MatrixFormat::dense) + weights, reading(phase));
  }

  double video() {
    const auto& clip = inputs_.settings.video;
    const Work work =
        video_decode_work(models_.video_decoder->config(), clip.frames, clip.height, clip.width);
    const Request& request = inputs_.request;
    // The encoder's work a pixel, as elementwise operations; measured.
    constexpr double kEncoder = 40;
    const double encoding =
        kEncoder * speed_.stream() * static_cast<double>(request.width * request.height * request.frames);
    return overlapped(computing(work, kernels::MatrixFormat::dense), reading(*plan_.find("decode video"))) +
           encoding;
  }

 private:
  static double share(Bytes part, Bytes whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
  }

  static double overlapped(double computing, double reading) { return std::max(computing, reading); }

  double computing(const Work& work, kernels::MatrixFormat format) {
    const double size = inputs_.settings.dtype == at::kBFloat16 ? 2 : 4;
    double seconds = 0;
    for (const auto& [rows, elements] : work.linear) seconds += elements * speed_.linear(rows, format);
    if (work.attention > 0) seconds += work.attention * speed_.attention();
    if (work.conv3d > 0) seconds += work.conv3d * speed_.conv3d();
    if (work.conv1d > 0) seconds += work.conv1d * speed_.conv1d();
    if (work.elements > 0) seconds += 2 * size * work.elements * speed_.stream();
    return kInsideAPhase * seconds;
  }

  double reading(const ComponentStaging& staging, Bytes bytes) {
    if (bytes == 0) return 0;
    const Checkpoint& checkpoint = checkpoint_of(staging);
    // A mapping is brought in at the rate of reading; it may not be to be had while planning.
    const ReadBackend backend =
        may_map(inputs_.request.read_backend) ? ReadBackend::automatic : inputs_.request.read_backend;
    const double cold = 1 - cached_share(checkpoint);
    return cold * static_cast<double>(bytes) * speed_.read(checkpoint, {.backend = backend});
  }

  double reading(const PhasePlan& phase) {
    double seconds = 0;
    for (const ComponentStaging& staging : phase.staging) seconds += reading(staging, staging.bytes_once);
    return seconds;
  }

  const Checkpoint& checkpoint_of(const ComponentStaging& staging) const {
    if (inputs_.encoder && staging.component == inputs_.encoder->table.name)
      return inputs_.encoder->table.checkpoint;
    if (inputs_.upsampler && staging.component == inputs_.upsampler->table.name)
      return inputs_.upsampler->table.checkpoint;
    for (ComponentKind kind : ltx2::kComponentKinds) {
      if (models_.table(kind).name == staging.component) return models_.table(kind).checkpoint;
    }
    return models_.table(ComponentKind::transformer).checkpoint;
  }

  const RunPlan& plan_;
  const RunInputs& inputs_;
  const ModelSet& models_;
  MachineSpeed& speed_;
};

}  // namespace

void predict(RunPlan& plan, const RunInputs& inputs, MachineSpeed& speed) {
  Prediction prediction(plan, inputs, speed);
  for (PhasePlan& phase : plan.phases) {
    if (phase.name == "text") phase.seconds = prediction.text();
    for (std::size_t stage = 0; stage < inputs.settings.stages.size(); ++stage) {
      if (phase.name == condition_phase(stage)) phase.seconds = prediction.condition(phase, stage);
      if (phase.name == denoise_phase(stage)) phase.seconds = prediction.denoise(phase, stage);
    }
    if (phase.name == "upsample") phase.seconds = prediction.upsample(phase);
    const auto clips = static_cast<double>(inputs.request.count);
    if (phase.name == "decode sound") phase.seconds = clips * prediction.sound();
    if (phase.name == "decode video") phase.seconds = clips * prediction.video();
  }
}

}  // namespace sluice::pipeline
