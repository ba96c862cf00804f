#include "models/ltx2/vocoder/generator.h"

#include "models/ltx2/vocoder/pieces.h"

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

// As many samples out as in.
at::Tensor same_conv(const nn::Conv& conv, const at::Tensor& x, std::int64_t dilation = 1) {
  const std::int64_t reach = (conv.weight.size(2) - 1) * dilation;
  const PieceShape shape = {.samples = conv_piece(x.size(0), x.size(1), conv.weight.numel()), .reach = reach};
  return in_pieces(x, shape, [&](const at::Tensor& piece) {
    return nn::conv(conv, piece, {.padding = {reach / 2}, .dilation = {dilation}});
  });
}

at::Tensor raise_rate(const nn::Conv& conv, const at::Tensor& x, std::int64_t factor) {
  const std::int64_t kernel = conv.weight.size(2);
  const PieceShape shape = {.samples = conv_piece(x.size(0), x.size(1), conv.weight.numel()),
                            .reach = kernel / factor + 1,
                            .factor = factor};
  return in_pieces(x, shape, [&](const at::Tensor& piece) {
    return nn::conv_transposed(conv, piece, {.padding = {(kernel - factor) / 2}, .stride = {factor}});
  });
}

// A block's input is not its own: other blocks take it too.
at::Tensor residual_block(const GeneratorResidualBlock& block, const std::vector<std::int64_t>& dilations,
                          at::Tensor x) {
  for (std::size_t k = 0; k < block.size(); k++) {
    const GeneratorResidualStep& step = block[k];
    at::Tensor h = antialiased_snake(step.act1, x);
    h = same_conv(step.conv1, h, dilations[k]);
    h = antialiased_snake(step.act2, h);
    x = same_conv(step.conv2, h).add_(x);
  }
  return x;
}

// The blocks' mean: they stand side by side, not in a row.
at::Tensor residual_mean(const GeneratorStage& stage, const GeneratorConfig& config, const at::Tensor& x) {
  at::Tensor sum = residual_block(stage.resnets[0], config.resnet_dilations[0], x);
  if (sum.is_same(x)) sum = x.clone();  // a block without steps
  for (std::size_t j = 1; j < stage.resnets.size(); j++)
    sum.add_(residual_block(stage.resnets[j], config.resnet_dilations[j], x));
  return sum.div_(static_cast<double>(stage.resnets.size()));
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

std::int64_t conv_piece(std::int64_t batch, std::int64_t channels, std::int64_t weights) {
  return samples_in(std::max(kSoundPiece, 4 * weights), batch, channels);
}

at::Tensor generate_wave(const Generator& generator, const at::Tensor& mel) {
  const GeneratorConfig& config = generator.config;
  at::Tensor x = mel.transpose(2, 3).flatten(1, 2);  // [batch, wave channel · bin, frames]
  x = same_conv(generator.conv_in, x);
  for (std::size_t i = 0; i < generator.stages.size(); i++) {
    x = raise_rate(generator.stages[i].upsampler, x, config.upsample_factors[i]);
    x = residual_mean(generator.stages[i], config, x);
  }
  x = antialiased_snake(generator.act_out, x);
  x = same_conv(generator.conv_out, x);
  return finish(config.final_activation, x);
}

}  // namespace sluice::ltx2
