// vocoder/*: from log-mel spectrograms to sound, and two of its parts on their own.
#include "models/ltx2/vocoder/activation.h"
#include "models/ltx2/vocoder/resample.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "parity/registry.h"
#include "support/antialiased_steps.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

namespace sluice::parity {
namespace {

// A case may raise the first generator's output by a factor, so that there is something to clamp.
std::unique_ptr<weights::WeightSource> weights_of(const Case& parity_case, const ltx2::Vocoder& vocoder) {
  auto source = test::open_weights(parity_case.weights(), vocoder.groups(), ltx2::Vocoder::ignore_rules());
  if (!parity_case.has_param("scale_vocoder_conv_out_weight")) return source;
  test::TensorMap tensors = test::read_tensors(parity_case.weights());
  tensors.at("vocoder.conv_out.weight").mul_(parity_case.param<double>("scale_vocoder_conv_out_weight"));
  return std::make_unique<test::TensorSource>(std::move(tensors));
}

Results run_vocoder(const Case& parity_case) {
  const ltx2::Vocoder vocoder(
      ltx2::VocoderConfig::parse(parity_case.config(), parity_case.manifest().full_name()));
  const auto source = weights_of(parity_case, vocoder);
  const ltx2::VocoderResult sound = vocoder.run(*source, parity_case.input("mel"));
  Results results;
  results.add("low_rate", sound.low_rate);
  results.add("inner_mel", sound.inner_mel);
  results.add("residual", sound.residual);
  results.add("skip", sound.skip);
  results.add("waveform", sound.waveform);
  return results;
}

Results run_activation(const Case& parity_case) {
  weights::ParameterGroup group{.name = "activation"};
  ltx2::AntialiasedSnake layer;
  ltx2::declare(weights::ParameterScope(group), layer, parity_case.config_value<std::int64_t>("channels"),
                {.ratio = parity_case.config_value<std::int64_t>("antialias_ratio"),
                 .kernel_size = parity_case.config_value<std::int64_t>("antialias_kernel_size")});
  const auto source = test::open_weights(parity_case.weights(), {&group});
  const auto lease = source->acquire(group);
  const test::AntialiasedSteps steps = test::antialiased_steps(layer, parity_case.input("x"));
  Results results;
  results.add("upsampled", steps.upsampled);
  results.add("activated", steps.activated);
  results.add("y", steps.result);
  return results;
}

Results run_resampler(const Case& parity_case) {
  const auto from = parity_case.config_value<std::int64_t>("input_sampling_rate");
  const auto to = parity_case.config_value<std::int64_t>("output_sampling_rate");
  if (from <= 0 || to % from != 0) throw MalformedCase("config: the rates are no multiple of each other");
  Results results;
  results.add("filter", ltx2::hann_sinc_filter(to / from));
  results.add("y", ltx2::hann_sinc_resample(parity_case.input("x"), to / from));
  return results;
}

}  // namespace

void add_vocoder(Registry& registry) {
  registry.add("vocoder", "bwe", run_vocoder);
  registry.add("vocoder", "activation", run_activation);
  registry.add("vocoder", "resampler", run_resampler);
}

}  // namespace sluice::parity
