#include "pipeline/sampler_steps.h"

#include "sampling/euler.h"
#include "sampling/euler_ancestral.h"
#include "sampling/res_2s.h"

#include <ATen/ATen.h>

namespace sluice::pipeline {
namespace {

using Stream = at::Tensor Latents::*;

// Work on each stream of a clip that takes a step.
template <typename Work>
Latents each_stream(const Latents& x, const Latents& x0, const DenoiseSetup& setup, const Work& work) {
  Latents next = x;
  if (x0.video.defined()) next.video = work(&Latents::video, setup.video).to(at::kFloat);
  if (x0.audio.defined()) next.audio = work(&Latents::audio, setup.audio).to(at::kFloat);
  return next;
}

Latents euler(const Latents& x, const Latents& x0, const DenoiseSetup& setup, sampling::SigmaStep sigma) {
  return each_stream(x, x0, setup, [&](Stream stream, const sampling::Conditioning&) {
    return sampling::euler_step_to_x0(x.*stream, x0.*stream, sigma);
  });
}

// The noise falls on given tokens too: they are put back.
Latents ancestral(const Latents& x, const Latents& x0, const DenoiseSetup& setup, sampling::SigmaStep sigma,
                  const Latents& noise) {
  return each_stream(x, x0, setup, [&](Stream stream, const sampling::Conditioning& given) {
    return with_given(sampling::ancestral_step_to_x0(x.*stream, x0.*stream, noise.*stream, sigma), given);
  });
}

// A step of res_2s for all clips; the model is asked at the step's begin and in its middle, and once more at
// the end of the last one.  What goes from step to step is rounded to f32, as in the other samplers.
class Res2s {
 public:
  Res2s(const std::vector<Latents>& clips, const Predict& predict, const DenoiseSetup& setup, float from,
        float to)
      : clips_(clips),
        predict_(predict),
        setup_(setup),
        step_(sampling::res_2s_step(from, to > 0 ? static_cast<double>(to) : sampling::kSmallestSigma)),
        last_(to == 0) {}

  std::vector<Latents> run() const {
    const std::vector<Latents> x0 = predict_(clips_, static_cast<float>(step_.from));
    std::vector<Latents> middle, from, next;
    for (std::size_t clip = 0; clip < clips_.size(); ++clip) {
      const Latents& x = clips_[clip];
      const Latents noise = setup_.noise(clip, NoiseUse::middle);
      middle.push_back(each(x, x0[clip], [&](Stream s) {
        return renoised(x.*s, sampling::middle_sample(step_, x.*s, x0[clip].*s), noise.*s, step_.middle,
                        sampling::kMiddleEta);
      }));
      from.push_back(each(x, x0[clip], [&](Stream s) {
        return sampling::anchor(step_, x.*s, x0[clip].*s, middle.back().*s);
      }));
    }
    const std::vector<Latents> x0_middle = predict_(middle, static_cast<float>(step_.middle));
    for (std::size_t clip = 0; clip < clips_.size(); ++clip) {
      const Latents& x = from[clip];
      const Latents noise = setup_.noise(clip, NoiseUse::step);
      next.push_back(each(x, x0[clip], [&](Stream s) {
        return renoised(x.*s, sampling::next_sample(step_, x.*s, x0[clip].*s, x0_middle[clip].*s), noise.*s,
                        step_.to, sampling::RenoiseOptions{}.eta);
      }));
    }
    if (!last_) return next;
    const std::vector<Latents> clean = predict_(next, static_cast<float>(sampling::kSmallestSigma));
    for (std::size_t clip = 0; clip < clips_.size(); ++clip)
      next[clip] = each(next[clip], clean[clip], [&](Stream s) { return clean[clip].*s; });
    return next;
  }

 private:
  template <typename Work>
  Latents each(const Latents& x, const Latents& x0, const Work& work) const {
    return each_stream(x, x0, setup_, [&](Stream stream, const sampling::Conditioning& given) {
      return with_given(work(stream), given);
    });
  }

  at::Tensor renoised(const at::Tensor& x, const at::Tensor& moved, const at::Tensor& noise, double to,
                      double eta) const {
    return sampling::renoise(x, moved, sampling::normal_noise(noise), step_.from, to, {.eta = eta});
  }

  const std::vector<Latents>& clips_;
  const Predict& predict_;
  const DenoiseSetup& setup_;
  const sampling::Res2sStep step_;
  const bool last_;
};

}  // namespace

std::vector<Latents> sampler_step(const std::vector<Latents>& clips, const Predict& predict,
                                  const DenoiseSetup& setup, float from, float to) {
  if (setup.sampler == Sampler::res_2s) return Res2s(clips, predict, setup, from, to).run();
  const std::vector<Latents> x0 = predict(clips, from);
  const sampling::SigmaStep sigma{.from = from, .to = to};
  std::vector<Latents> next;
  for (std::size_t clip = 0; clip < clips.size(); ++clip) {
    if (setup.sampler == Sampler::euler) {
      next.push_back(euler(clips[clip], x0[clip], setup, sigma));
    } else {
      const Latents noise = to > 0 ? setup.noise(clip, NoiseUse::step) : Latents{};
      next.push_back(ancestral(clips[clip], x0[clip], setup, sigma, noise));
    }
  }
  return next;
}

std::int64_t evaluations(Sampler sampler, std::int64_t steps) {
  return sampler == Sampler::res_2s ? 2 * steps + 1 : steps;
}

}  // namespace sluice::pipeline
