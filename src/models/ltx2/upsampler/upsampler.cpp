#include "models/ltx2/upsampler/upsampler.h"

#include "models/ltx2/upsampler/clip_conv.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <utility>

namespace sluice::ltx2 {
namespace {

nn::ConvShape conv_shape(std::int64_t in, std::int64_t out, bool in_time) {
  return {.in = in,
          .out = out,
          .kernel = in_time ? std::vector<std::int64_t>{3, 3, 3} : std::vector<std::int64_t>{3, 3}};
}

void declare_norm(const weights::ParameterScope& scope, GroupNorm& norm, std::int64_t channels) {
  scope.add("weight", norm.weight, {channels});
  scope.add("bias", norm.bias, {channels});
}

// silu(x + norm2(conv2(silu(norm1(conv1(x))))))
at::Tensor run_block(const UpsamplerBlock& block, const at::Tensor& x, NormSpan span) {
  at::Tensor h = clip_conv(block.conv1, x);
  norm_silu(block.norm1, h, span);
  h = clip_conv(block.conv2, h);
  norm_silu(block.norm2, h, span, x);
  return h;
}

}  // namespace

LatentUpsampler::LatentUpsampler(UpsamplerConfig config) : config_(config), growth_(Growth::of(config_)) {
  const std::int64_t in = config_.in_channels, mid = config_.mid_channels;
  const bool in_time = !config_.frame_by_frame;
  {
    weights::ParameterScope scope(groups_.emplace_back(weights::ParameterGroup{"initial_conv", {}}));
    declare(scope / "initial_conv", initial_conv_, conv_shape(in, mid, in_time));
    declare_norm(scope / "initial_norm", initial_norm_, mid);
  }
  declare_blocks(before_, "res_blocks");
  {
    weights::ParameterScope scope(groups_.emplace_back(weights::ParameterGroup{"upsampler", {}}),
                                  "upsampler");
    declare(scope / (config_.rational ? "conv" : "0"), upsample_,
            conv_shape(mid, growth_.values() * mid, config_.temporal));
    if (growth_.blurs()) (scope / "blur_down").add("kernel", blur_, {1, 1, kBlurTaps, kBlurTaps});
  }
  declare_blocks(after_, "post_upsample_res_blocks");
  weights::ParameterScope scope(groups_.emplace_back(weights::ParameterGroup{"final_conv", {}}));
  declare(scope / "final_conv", final_conv_, conv_shape(mid, in, in_time));
}

void LatentUpsampler::declare_blocks(std::vector<UpsamplerBlock>& blocks, const std::string& name) {
  const std::int64_t mid = config_.mid_channels;
  blocks.resize(static_cast<std::size_t>(config_.blocks));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const std::string prefix = fmt::format("{}.{}", name, i);
    weights::ParameterScope scope(groups_.emplace_back(weights::ParameterGroup{prefix, {}}), prefix);
    for (auto [number, conv, norm] : {std::tuple{1, &blocks[i].conv1, &blocks[i].norm1},
                                      std::tuple{2, &blocks[i].conv2, &blocks[i].norm2}}) {
      declare(scope / fmt::format("conv{}", number), *conv, conv_shape(mid, mid, !config_.frame_by_frame));
      declare_norm(scope / fmt::format("norm{}", number), *norm, mid);
    }
  }
}

std::vector<const weights::ParameterGroup*> LatentUpsampler::groups() const {
  std::vector<const weights::ParameterGroup*> groups;
  for (const weights::ParameterGroup& group : groups_) groups.push_back(&group);
  return groups;
}

std::vector<weights::IgnoreRule> LatentUpsampler::ignore_rules(const UpsamplerConfig& config) {
  if (!config.rational || Growth::of(config).blurs()) return {};
  return {{"upsampler.blur_down.kernel", "a scale of a whole number needs no blur"}};
}

at::Tensor LatentUpsampler::forward(weights::WeightSource& source, const at::Tensor& latents,
                                    at::ScalarType compute) const {
  if (latents.dim() != 5 || latents.size(0) != 1 || latents.size(1) != config_.in_channels ||
      latents.numel() == 0)
    throw Error(
        ErrorKind::internal,
        fmt::format("latent upsampler: latents are {}, not [1, {}, F, H, W] of at least one place",
                    format_shape({latents.sizes().data(), latents.sizes().size()}), config_.in_channels));
  at::Tensor x = initial(source, latents, compute);  // [F, H, W, mid]
  x = run_blocks(source, before_, 1, std::move(x));
  {
    const auto lease = source.acquire(groups_[1 + before_.size()]);
    x = grow(upsample_, blur_, growth_, x);  // [F', H', W', mid]
  }
  x = run_blocks(source, after_, 2 + before_.size(), std::move(x));
  x = final(source, x);  // [F', H', W', in]
  at::Tensor result =
      at::empty({1, x.size(3), x.size(0), x.size(1), x.size(2)}, x.options().dtype(at::kFloat));
  result[0].copy_(x.permute({3, 0, 1, 2}));
  return result;
}

at::Tensor LatentUpsampler::initial(weights::WeightSource& source, const at::Tensor& latents,
                                    at::ScalarType compute) const {
  const auto lease = source.acquire(groups_.front());
  const at::Tensor channels_last = at::empty(
      {latents.size(2), latents.size(3), latents.size(4), latents.size(1)}, latents.options().dtype(compute));
  channels_last.copy_(latents[0].permute({1, 2, 3, 0}));
  at::Tensor x = clip_conv(initial_conv_, channels_last);
  norm_silu(initial_norm_, x, span());
  return x;
}

at::Tensor LatentUpsampler::run_blocks(weights::WeightSource& source,
                                       const std::vector<UpsamplerBlock>& blocks, std::size_t first_group,
                                       at::Tensor x) const {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const auto lease = source.acquire(groups_[first_group + i]);
    x = run_block(blocks[i], x, span());
  }
  return x;
}

at::Tensor LatentUpsampler::final(weights::WeightSource& source, const at::Tensor& x) const {
  const auto lease = source.acquire(groups_.back());
  return clip_conv(final_conv_, x);
}

}  // namespace sluice::ltx2
