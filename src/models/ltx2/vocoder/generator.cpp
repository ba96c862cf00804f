#include "models/ltx2/vocoder/generator.h"

#include "kernels/conv_line.h"
#include "models/ltx2/vocoder/line.h"
#include "models/ltx2/vocoder/wave_rows.h"

#include <ATen/ATen.h>

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

std::int64_t around(const kernels::LineConv& conv) {
  const kernels::LineReach reach = kernels::line_reach(conv);
  return std::max(reach.before, reach.behind);
}

// Tensors of a stage beside its input and its result.
struct StageRows {
  StageRows(const GeneratorConfig& config, std::int64_t rows, std::int64_t channels)
      : block(rows, channels), hidden(rows, channels) {
    if (activates_whole(config, channels)) activated = WaveRows(rows, channels, widest_reach(config));
  }

  WaveRows block;      // what a residual block has computed so far
  WaveRows hidden;     // between a step's two convolutions
  WaveRows activated;  // where an activation is computed as a whole
};

// An activation and the convolution that follows it.  Few weights take the activated rows piece by piece, so
// that they never leave the cache.
void activated_conv(const AntialiasedSnake& act, const Line& line, const WaveRows& x,
                    const WaveRows& activated, const kernels::LineResult& result) {
  const kernels::SmoothSnake snake = smooth_snake(act);
  if (kernels::takes_pieces(line.conv()))
    return kernels::conv_line(
        line.conv(), x.rows(),
        [&](std::int64_t begin, std::int64_t end, float* to) {
          snake.run(x.data(), x.rows(), begin, end, to);
        },
        result);
  run(snake, x.data(), x.rows(), activated.data());
  kernels::conv_line(line.conv(), {.rows = x.rows(), .x = activated.data()}, result);
}

// Adds a block's result to the sum of those before it, times `scale`.  Its input is not its own: other blocks
// take it too.
void add_residual_block(const GeneratorResidualBlock& block, const std::vector<std::int64_t>& dilations,
                        const WaveRows& x, const StageRows& rows, kernels::LineResult sum) {
  for (std::size_t k = 0; k < block.size(); k++) {
    const GeneratorResidualStep& step = block[k];
    const WaveRows& from = k == 0 ? x : rows.block;
    activated_conv(step.act1, Line::same(step.conv1, dilations[k]), from, rows.activated,
                   {.y = rows.hidden.data()});
    kernels::LineResult to = k + 1 < block.size() ? kernels::LineResult{.y = rows.block.data()} : sum;
    to.added[0] = from.data();
    activated_conv(step.act2, Line::same(step.conv2), rows.hidden, rows.activated, to);
  }
}

// The blocks' mean: they stand side by side, not in a row.
void residual_mean(const GeneratorStage& stage, const GeneratorConfig& config, const WaveRows& x,
                   const WaveRows& mean) {
  const StageRows rows(config, x.rows(), x.channels());
  const std::size_t blocks = stage.resnets.size();
  for (std::size_t j = 0; j < blocks; j++) {
    kernels::LineResult sum = {.y = mean.data()};
    if (j > 0) sum.added[1] = mean.data();
    if (j + 1 == blocks) sum.scale = 1 / static_cast<float>(blocks);
    add_residual_block(stage.resnets[j], config.resnet_dilations[j], x, rows, sum);
  }
}

WaveRows raise_rate(const Line& line, const WaveRows& x) {
  WaveRows y(kernels::line_rows(line.conv(), x.rows()), line.conv().weights.out);
  kernels::conv_line(line.conv(), {.rows = x.rows(), .x = x.data()}, {.y = y.data()});
  return y;
}

// Rows around the input of a stage's upsampler; behind the last stage none.
std::int64_t around_stage(const Generator& generator, std::size_t stage) {
  if (stage == generator.stages.size()) return 0;
  return around(
      Line::raising(generator.stages[stage].upsampler, generator.config.upsample_factors[stage]).conv());
}

// mel: [wave channels, frames, bins].
WaveRows first_rows(const Generator& generator, const at::Tensor& mel) {
  const Line line = Line::same(generator.conv_in);
  const WaveRows x(mel.size(1), generator.config.in_channels, around(line.conv()));
  x.tensor().unflatten(1, {mel.size(0), mel.size(2)}).copy_(mel.transpose(0, 1));
  WaveRows y(mel.size(1), generator.config.hidden_channels, around_stage(generator, 0));
  kernels::conv_line(line.conv(), {.rows = x.rows(), .x = x.data()}, {.y = y.data()});
  return y;
}

at::Tensor finish(FinalActivation activation, const at::Tensor& wave) {
  switch (activation) {
    case FinalActivation::none:
      return wave;
    case FinalActivation::clamp:
      return wave.clamp(-1, 1);
    case FinalActivation::tanh:
      return wave.tanh();
  }
  return wave;
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

std::int64_t widest_reach(const GeneratorConfig& config) {
  std::int64_t widest = 0;
  for (std::size_t j = 0; j < config.resnet_kernel_sizes.size(); j++)
    for (std::int64_t dilation : config.resnet_dilations[j])
      widest = std::max(widest, (config.resnet_kernel_sizes[j] - 1) * dilation / 2);
  return widest;
}

bool activates_whole(const GeneratorConfig& config, std::int64_t channels) {
  return std::ranges::any_of(config.resnet_kernel_sizes, [&](std::int64_t kernel) {
    return !kernels::takes_pieces(same_line(channels, channels, kernel));
  });
}

namespace {

// [samples, wave channels]
at::Tensor clip_wave(const Generator& generator, const at::Tensor& mel) {
  const GeneratorConfig& config = generator.config;
  WaveRows x = first_rows(generator, mel);
  for (std::size_t i = 0; i < generator.stages.size(); i++) {
    const GeneratorStage& stage = generator.stages[i];
    x = raise_rate(Line::raising(stage.upsampler, config.upsample_factors[i]), x);
    const WaveRows mean(x.rows(), x.channels(), around_stage(generator, i + 1));
    residual_mean(stage, config, x, mean);
    x = mean;
  }
  const Line last = Line::same(generator.conv_out);
  const WaveRows wave(x.rows(), config.out_channels);
  WaveRows activated;
  if (!kernels::takes_pieces(last.conv())) activated = WaveRows(x.rows(), x.channels(), around(last.conv()));
  activated_conv(generator.act_out, last, x, activated, {.y = wave.data()});
  return finish(config.final_activation, wave.tensor());
}

}  // namespace

at::Tensor generate_wave(const Generator& generator, const at::Tensor& mel) {
  std::vector<at::Tensor> waves;
  for (const at::Tensor& clip : mel.unbind(0)) waves.push_back(clip_wave(generator, clip).t());
  return at::stack(waves);
}

}  // namespace sluice::ltx2
