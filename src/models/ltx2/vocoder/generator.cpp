#include "models/ltx2/vocoder/generator.h"

#include "kernels/conv_line.h"
#include "kernels/scratch.h"
#include "models/ltx2/vocoder/line.h"
#include "models/ltx2/vocoder/wave_rows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kEndKernel = 7;  // of conv_in and conv_out

void declare_step(const weights::ParameterScope& scope, std::int64_t index, GeneratorResidualStep& step,
                  std::int64_t channels, std::int64_t kernel, const GeneratorConfig& config) {
  const nn::ConvShape shape = {.in = channels, .out = channels, .kernel = {kernel}};
  declare(scope / "acts1" / index, step.act1, channels, config.antialias);
  declare(scope / "acts2" / index, step.act2, channels, config.antialias);
  nn::declare(scope / "convs1" / index, step.conv1, shape);
  nn::declare(scope / "convs2" / index, step.conv2, shape);
}

void declare_resnets(const weights::ParameterScope& scope, GeneratorStage& stage, std::int64_t first_index,
                     std::int64_t channels, const GeneratorConfig& config) {
  stage.resnets.resize(config.resnet_kernel_sizes.size());
  for (std::size_t j = 0; j < stage.resnets.size(); j++) {
    stage.resnets[j].resize(config.resnet_dilations[j].size());
    for (std::size_t k = 0; k < stage.resnets[j].size(); k++)
      declare_step(scope / (first_index + static_cast<std::int64_t>(j)), static_cast<std::int64_t>(k),
                   stage.resnets[j][k], channels, config.resnet_kernel_sizes[j], config);
  }
}

// The tensors of a clip, each in memory that all stages use again: its pages are new only once.
class Waves {
 public:
  explicit Waves(const GeneratorMemory& memory) : activated_(at::empty({memory.activated}, at::kFloat)) {
    for (at::Tensor& wave : waves_) wave = at::empty({memory.wave}, at::kFloat);
  }

  const at::Tensor& stage() const { return waves_[0]; }   // a stage's input
  const at::Tensor& mean() const { return waves_[1]; }    // its result
  const at::Tensor& block() const { return waves_[2]; }   // what a residual block has computed so far
  const at::Tensor& hidden() const { return waves_[3]; }  // between a step's two convolutions
  const at::Tensor& activated() const { return activated_; }

 private:
  at::Tensor waves_[GeneratorMemory::kWaves], activated_;
};

// An activation and the convolution that follows it.  Few weights take the activated rows piece by piece, so
// that they never leave the cache.
void activated_conv(const AntialiasedSnake& act, const Line& line, const WaveRows& x,
                    const at::Tensor& memory, const kernels::LineResult& result) {
  const kernels::SmoothSnake snake = smooth_snake(act);
  if (kernels::takes_pieces(line.conv()))
    return kernels::conv_line(
        line.conv(), x.rows(),
        [&](std::int64_t begin, std::int64_t end, float* to) {
          snake.run(x.data(), x.rows(), begin, end, to);
        },
        result);
  const WaveRows activated(memory, x.rows(), x.channels(), rows_around(line.conv()));
  run(snake, x.data(), x.rows(), activated.data());
  kernels::conv_line(line.conv(), {.rows = x.rows(), .x = activated.data()}, result);
}

// Adds a block's result to the sum of those before it, times `scale`.  Its input is not its own: other blocks
// take it too.
void add_residual_block(const GeneratorResidualBlock& block, const std::vector<std::int64_t>& dilations,
                        const WaveRows& x, const Waves& waves, const kernels::LineResult& sum) {
  const WaveRows own(waves.block(), x.rows(), x.channels());
  const WaveRows hidden(waves.hidden(), x.rows(), x.channels());
  for (std::size_t k = 0; k < block.size(); k++) {
    const GeneratorResidualStep& step = block[k];
    const WaveRows& from = k == 0 ? x : own;
    activated_conv(step.act1, Line::same(step.conv1, dilations[k]), from, waves.activated(),
                   {.y = hidden.data()});
    kernels::LineResult to = k + 1 < block.size() ? kernels::LineResult{.y = own.data()} : sum;
    to.added[0] = from.data();
    activated_conv(step.act2, Line::same(step.conv2), hidden, waves.activated(), to);
  }
}

// The blocks' mean: they stand side by side, not in a row.
void residual_mean(const GeneratorStage& stage, const GeneratorConfig& config, const WaveRows& x,
                   const Waves& waves, const WaveRows& mean) {
  const std::size_t blocks = stage.resnets.size();
  for (std::size_t j = 0; j < blocks; j++) {
    kernels::LineResult sum = {.y = mean.data()};
    if (j > 0) sum.added[1] = mean.data();
    if (j + 1 == blocks) sum.scale = 1 / static_cast<float>(blocks);
    add_residual_block(stage.resnets[j], config.resnet_dilations[j], x, waves, sum);
  }
}

WaveRows raise_rate(const Line& line, const WaveRows& x, const at::Tensor& memory) {
  WaveRows y(memory, kernels::line_rows(line.conv(), x.rows()), line.conv().weights.out);
  kernels::conv_line(line.conv(), {.rows = x.rows(), .x = x.data()}, {.y = y.data()});
  return y;
}

kernels::LineConv first_line(const GeneratorConfig& config) {
  return same_line(config.in_channels, config.hidden_channels, kEndKernel);
}
kernels::LineConv last_line(const GeneratorConfig& config) {
  return same_line(config.channels(config.upsample_factors.size()), config.out_channels, kEndKernel);
}
kernels::LineConv upsampler(const GeneratorConfig& config, std::size_t stage) {
  return raising_line(config.channels(stage), config.channels(stage + 1), config.upsample_kernel_sizes[stage],
                      config.upsample_factors[stage]);
}

// Rows around the input of a stage's upsampler; behind the last stage none.
std::int64_t around_stage(const GeneratorConfig& config, std::size_t stage) {
  return stage < config.upsample_factors.size() ? rows_around(upsampler(config, stage)) : 0;
}

// mel: [wave channels, frames, bins].
WaveRows first_rows(const Generator& generator, const at::Tensor& mel, const Waves& waves) {
  const GeneratorConfig& config = generator.config;
  const WaveRows x(waves.stage(), mel.size(1), config.in_channels, rows_around(first_line(config)));
  x.tensor().unflatten(1, {mel.size(0), mel.size(2)}).copy_(mel.transpose(0, 1));
  WaveRows y(waves.mean(), mel.size(1), config.hidden_channels, around_stage(config, 0));
  kernels::conv_line(Line::same(generator.conv_in).conv(), {.rows = x.rows(), .x = x.data()},
                     {.y = y.data()});
  return y;
}

void finish(FinalActivation activation, at::Tensor& wave) {
  if (activation == FinalActivation::clamp) wave.clamp_(-1, 1);
  if (activation == FinalActivation::tanh) wave.tanh_();
}

// wave: [wave channels, samples].
void generate_clip(const Generator& generator, const at::Tensor& mel, const Waves& waves, at::Tensor wave) {
  const GeneratorConfig& config = generator.config;
  WaveRows x = first_rows(generator, mel, waves);
  for (std::size_t i = 0; i < generator.stages.size(); i++) {
    const GeneratorStage& stage = generator.stages[i];
    const Line line = Line::raising(stage.upsampler, config.upsample_factors[i]);
    const WaveRows raised = raise_rate(line, x, waves.stage());
    x = WaveRows(waves.mean(), raised.rows(), raised.channels(), around_stage(config, i + 1));
    residual_mean(stage, config, raised, waves, x);
  }
  const WaveRows rows(waves.stage(), x.rows(), config.out_channels);
  activated_conv(generator.act_out, Line::same(generator.conv_out), x, waves.activated(), {.y = rows.data()});
  wave.copy_(rows.tensor().t());
}

void add_wave(std::int64_t rows, std::int64_t channels, std::int64_t around, GeneratorMemory& memory) {
  memory.wave = std::max(memory.wave, WaveRows::values(rows, channels, around));
}
void add_line(const kernels::LineConv& line, GeneratorMemory& memory) {
  memory.scratch = std::max(memory.scratch, kernels::line_scratch(line, at::get_num_threads()));
}
void add_activated(const kernels::LineConv& line, std::int64_t rows, GeneratorMemory& memory) {
  add_line(line, memory);
  if (kernels::takes_pieces(line)) return;
  memory.activated = std::max(memory.activated, WaveRows::values(rows, line.weights.in, rows_around(line)));
}

}  // namespace

void declare(const weights::ParameterScope& scope, Generator& generator, const GeneratorConfig& config) {
  generator.config = config;
  nn::declare(scope / "conv_in", generator.conv_in,
              {.in = config.in_channels, .out = config.hidden_channels, .kernel = {kEndKernel}});
  generator.stages.resize(config.upsample_factors.size());
  for (std::size_t i = 0; i < generator.stages.size(); i++) {
    const auto index = static_cast<std::int64_t>(i);
    const auto blocks = static_cast<std::int64_t>(config.resnet_kernel_sizes.size());
    nn::declare_transposed(scope / "upsamplers" / index, generator.stages[i].upsampler,
                           {.in = config.channels(i),
                            .out = config.channels(i + 1),
                            .kernel = {config.upsample_kernel_sizes[i]}});
    declare_resnets(scope / "resnets", generator.stages[i], index * blocks, config.channels(i + 1), config);
  }
  const std::int64_t last = config.channels(generator.stages.size());
  declare(scope / "act_out", generator.act_out, last, config.antialias);
  nn::declare(scope / "conv_out", generator.conv_out,
              {.in = last,
               .out = config.out_channels,
               .kernel = {kEndKernel},
               .bias = config.final_bias ? nn::Bias::yes : nn::Bias::no});
}

GeneratorMemory generator_memory(const GeneratorConfig& config, std::int64_t frames) {
  GeneratorMemory memory;
  add_line(first_line(config), memory);
  add_wave(frames, config.in_channels, rows_around(first_line(config)), memory);
  add_wave(frames, config.hidden_channels, around_stage(config, 0), memory);
  std::int64_t rows = frames;
  for (std::size_t stage = 0; stage < config.upsample_factors.size(); stage++) {
    const kernels::LineConv line = upsampler(config, stage);
    add_line(line, memory);
    rows = kernels::line_rows(line, rows);
    add_wave(rows, line.weights.out, around_stage(config, stage + 1), memory);
    for (std::size_t j = 0; j < config.resnet_kernel_sizes.size(); j++)
      for (std::int64_t dilation : config.resnet_dilations[j])
        add_activated(same_line(line.weights.out, line.weights.out, config.resnet_kernel_sizes[j], dilation),
                      rows, memory);
  }
  add_activated(last_line(config), rows, memory);
  return memory;
}

at::Tensor generate_wave(const Generator& generator, const at::Tensor& mel) {
  std::int64_t samples = mel.size(2);
  for (std::size_t stage = 0; stage < generator.stages.size(); stage++)
    samples = kernels::line_rows(upsampler(generator.config, stage), samples);
  // What stays comes before what is given back, so that no gap is left in front of it; scratch as large as it
  // gets.
  const GeneratorMemory memory = generator_memory(generator.config, mel.size(2));
  kernels::scratch({memory.scratch}, at::kByte);
  at::Tensor result =
      at::empty({mel.size(0), generator.config.out_channels, samples}, mel.options().dtype(at::kFloat));
  const Waves waves(memory);
  for (std::int64_t clip = 0; clip < mel.size(0); clip++)
    generate_clip(generator, mel[clip], waves, result[clip]);
  finish(generator.config.final_activation, result);
  return result;
}

}  // namespace sluice::ltx2
