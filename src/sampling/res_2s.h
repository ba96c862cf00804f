#pragma once
// The second order sampler res_2s: an exponential integrator with two evaluations of the model a step, at
// `from` and at sqrt(from · to), and noise in place of a share of what each part takes away.  With
// h = log(from / to) and phi_1(z) = (e^z - 1) / z, phi_2(z) = (e^z - 1 - z) / z²:
//
//   middle   m = x + c · (x0 - x),                     c = phi_1(-h / 2) · h / 2 = 1 - e^(-h / 2)
//   next     y = x + h · (b1 · (x0 - x) + b2 · (x0m - x)),   b2 = 2 phi_2(-h), b1 = phi_1(-h) - b2
//
// where x0 and x0m are the model's predictions of the clean sample at x and at m.  State is f64: samples may
// come as f32 or f64, results are f64; a call holds at most five f64 tensors of the sample's size at once.
// Source: res2s_audio_video_denoising_loop and Res2sDiffusionStep of Lightricks' ltx-pipelines 1.2.0.  The
// caller runs the model and draws the noise:
//
//   sigmas = res_2s_sigmas(list);
//   for each step from, to of sigmas, but the one to 0:
//     x0  = model(x, from)
//     m   = renoise(x, middle_sample(step, x, x0), normal_noise(draw), from, step.middle, {kMiddleEta})
//     x   = anchor(step, x, x0, m)
//     x0m = model(m, step.middle)
//     x   = renoise(x, next_sample(step, x, x0, x0m), normal_noise(draw), from, to, {eta})
//   x = model(x, kSmallestSigma)                       // where the list ended in 0
//
// so a list of n steps takes 2 n + 1 evaluations.  Conditioned tokens: every prediction and every renoised
// sample gets its clean values back.  Draws are standard normal, of the packed sample's shape [batch, tokens,
// channels]; the middle's and the steps' come from two streams of their own, neither the one that the first
// sample came from, each video first, then audio: n draws a modality and stream.

#include <ATen/core/Tensor.h>

#include <vector>

namespace sluice::sampling {

inline constexpr double kSmallestSigma = 0.0011;  // stands before a 0, whose logarithm there is none
inline constexpr double kMiddleEta = 0.5;         // whatever the steps' eta is, as in the source

// A list with a 0 at the end gets kSmallestSigma before it.
std::vector<double> res_2s_sigmas(const std::vector<double>& sigmas);

struct Res2sStep {
  double from = 0, to = 0;
  double middle = 0;  // sigma of the second evaluation
  double h = 0;
  double c = 0, b1 = 0, b2 = 0;
  bool anchored = false;  // whether a renoised middle moves the point that the step starts from
};

// from > to > 0; Error(usage) otherwise.
Res2sStep res_2s_step(double from, double to);

at::Tensor middle_sample(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0);

// The point from which the step leads through the renoised middle: a = (m - c · x0) / (1 - c), the limit of
// the source's hundred rounds of a <- m - c · (x0 - a).  In short steps that are not near the end; else x.
at::Tensor anchor(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0, const at::Tensor& middle);

at::Tensor next_sample(const Res2sStep& step, const at::Tensor& x, const at::Tensor& x0,
                       const at::Tensor& x0_middle);

struct RenoiseOptions {
  double eta = 0.5;  // share of the noise at `to` that is new, below 1; 0: `moved` as it is
};

// A sample that moved from x at sigma `from` to `to` > 0, with fresh noise for a part of its own.  Along the
// line e = (x - moved) / (from - to), d = x - from · e, with up = eta · to (at most 0.9999 to) and
// r = sqrt(to² - up²):  (1 - to + r) · d + r · e + up · noise.  `noise` is not looked at where eta is 0.
at::Tensor renoise(const at::Tensor& x, const at::Tensor& moved, const at::Tensor& noise, double from,
                   double to, const RenoiseOptions& options = {});

// A draw with mean 0 and (unbiased) standard deviation 1 in each batch row, f64.
at::Tensor normal_noise(const at::Tensor& drawn);

}  // namespace sluice::sampling
