// ltx25/ancestral_*, sampling/res_2s_*, latent_filters/*: samplers beside Euler's, filters between two
// stages.
#include "parity/registry.h"
#include "sampling/euler_ancestral.h"
#include "sampling/latent_filters.h"
#include "sampling/res_2s.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::parity {
namespace {

using namespace sampling;

// "prev_sample_3" -> 3 where the name begins with "prev_sample_".
template <typename Number>
std::optional<Number> number_behind(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  Number number{};
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Results run_ancestral(const Case& parity_case) {
  const AncestralOptions options{.eta = parity_case.config_value<double>("eta"),
                                 .s_noise = parity_case.config_value<double>("s_noise")};
  const auto sigmas = parity_case.param<std::vector<float>>("sigmas");
  const at::Tensor& sample = parity_case.input("sample");
  Results results;
  for (const auto& [name, entry] : parity_case.manifest().outputs) {
    const auto index = number_behind<std::size_t>("prev_sample_", name);
    if (!index) throw MalformedCase("manifest: output '" + name + "' names no step");
    const SigmaStep sigma{.from = sigmas.at(*index), .to = sigmas.at(*index + 1)};
    const at::Tensor x0 = velocity_to_x0(sample, parity_case.input("velocity"), sigma.from);
    results.add(name, ancestral_step_to_x0(sample, x0, parity_case.input("noise"), sigma, options));
  }
  return results;
}

Results run_res_2s_step(const Case& parity_case) {
  const Res2sStep step =
      res_2s_step(parity_case.param<double>("sigma"), parity_case.param<double>("sigma_next"));
  const at::Tensor& sample = parity_case.input("sample");
  const at::Tensor& x0 = parity_case.input("x0");
  const at::Tensor middle = middle_sample(step, sample, x0);
  const at::Tensor noisy = renoise(sample, middle, normal_noise(parity_case.input("middle_noise")), step.from,
                                   step.middle, {kMiddleEta});
  const at::Tensor start = anchor(step, sample, x0, noisy);
  const at::Tensor moved = next_sample(step, start, x0, parity_case.input("x0_middle"));
  Results results;
  results.add("middle", middle.to(at::kFloat));
  results.add("noisy_middle", noisy.to(at::kFloat));
  results.add("anchor", start.to(at::kFloat));
  results.add("moved", moved.to(at::kFloat));
  results.add("next", renoise(start, moved, normal_noise(parity_case.input("step_noise")), step.from, step.to,
                              {parity_case.param<double>("eta")})
                          .to(at::kFloat));
  return results;
}

// The caller's side of res_2s.h, with a made-up model and tokens that are held.
Results run_res_2s_loop(const Case& parity_case) {
  const auto sigmas = res_2s_sigmas(parity_case.param<std::vector<double>>("sigmas"));
  const RenoiseOptions options{parity_case.param<double>("eta")};
  const at::Tensor &mask = parity_case.input("mask"), &clean = parity_case.input("clean");
  auto hold = [&](const at::Tensor& x) { return x * (1 - mask) + clean * mask; };
  auto model = [&](const at::Tensor& x, double sigma) {
    return hold(at::tanh(parity_case.input("gain") * x) * (1 - 0.3 * sigma) + parity_case.input("bias"));
  };
  auto noise = [&](const char* stream, std::size_t i) {
    return normal_noise(parity_case.input(stream)[static_cast<std::int64_t>(i)]);
  };
  Results results;
  at::Tensor x = parity_case.input("sample");
  for (std::size_t i = 0; i + 2 < sigmas.size(); ++i) {
    const Res2sStep step = res_2s_step(sigmas[i], sigmas[i + 1]);
    const at::Tensor x0 = model(x, step.from);
    const at::Tensor middle = hold(renoise(x, middle_sample(step, x, x0), noise("middle_noise", i), step.from,
                                           step.middle, {kMiddleEta}));
    x = anchor(step, x, x0, middle);
    x = hold(renoise(x, next_sample(step, x, x0, model(middle, step.middle)), noise("step_noise", i),
                     step.from, step.to, options));
    results.add(fmt::format("step_{}", i), x.to(at::kFloat));
  }
  results.add("final", model(x, kSmallestSigma).to(at::kFloat));
  return results;
}

Results run_latent_filters(const Case& parity_case) {
  const at::Tensor& latents = parity_case.input("latents");
  Results results;
  for (const auto& [name, entry] : parity_case.manifest().outputs) {
    if (const auto factor = number_behind<double>("adain_", name)) {
      results.add(name, adain(latents, parity_case.input("reference"), *factor));
    } else if (const auto ratio = number_behind<double>("tone_map_", name)) {
      results.add(name, tone_map(latents, *ratio));
    } else {
      throw MalformedCase("manifest: output '" + name + "' is no filter with a number");
    }
  }
  return results;
}

}  // namespace

void add_samplers(Registry& registry) {
  registry.add("ltx25", "ancestral_", run_ancestral);
  registry.add("sampling", "res_2s_step_", run_res_2s_step);
  registry.add("sampling", "res_2s_loop", run_res_2s_loop);
  registry.add("latent_filters", "", run_latent_filters);
}

}  // namespace sluice::parity
