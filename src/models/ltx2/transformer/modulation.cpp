#include "models/ltx2/transformer/modulation.h"

#include <ATen/ATen.h>

#include <cmath>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kSinusoidWidth = 256;

}  // namespace

void declare(const weights::ParameterScope& scope, AdaLayerNorm& layer, std::int64_t width,
             std::int64_t rows) {
  layer.rows = rows;
  auto embedder = scope / "emb" / "timestep_embedder";
  nn::declare(embedder / "linear_1", layer.linear_1, {.in = kSinusoidWidth, .out = width});
  nn::declare(embedder / "linear_2", layer.linear_2, {.in = width, .out = width});
  nn::declare(scope / "linear", layer.linear, {.in = width, .out = rows * width});
}

at::Tensor timestep_sinusoid(const at::Tensor& timesteps) {
  constexpr std::int64_t kHalf = kSinusoidWidth / 2;
  at::Tensor exponents = at::arange(kHalf, at::TensorOptions().dtype(at::kFloat)) * (-std::log(10000.0));
  at::Tensor frequencies = at::exp(exponents / static_cast<double>(kHalf));
  at::Tensor angles = timesteps.to(at::kFloat).unsqueeze(-1) * frequencies;
  return at::cat({angles.cos(), angles.sin()}, -1);
}

Modulation::Modulation(const AdaLayerNorm& layer, const at::Tensor& timesteps, at::ScalarType dtype)
    : batch_(timesteps.size(0)), tokens_(timesteps.size(1)) {
  auto [distinct, index, counts] =
      at::_unique2(timesteps.flatten(), /*sorted=*/true, /*return_inverse=*/true);
  index_ = index;
  at::Tensor sinusoid = timestep_sinusoid(distinct).to(dtype);
  embedding_ = nn::linear(layer.linear_2, at::silu(nn::linear(layer.linear_1, sinusoid)));
  rows_ = nn::linear(layer.linear, at::silu(embedding_)).unflatten(-1, {layer.rows, -1});
}

at::Tensor Modulation::gather(const at::Tensor& distinct) const {
  return distinct.index_select(0, index_).unflatten(0, {batch_, tokens_});
}

at::Tensor Modulation::row(const at::Tensor& table, std::int64_t row) const {
  return gather(rows_.select(1, row) + table.select(0, row).to(rows_.scalar_type()));
}

at::Tensor Modulation::embedding() const {
  return gather(embedding_);
}
at::Tensor Modulation::rows() const {
  return gather(rows_);
}

}  // namespace sluice::ltx2
