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

Modulation::Modulation(const AdaLayerNorm& layer, const at::Tensor& timesteps, at::ScalarType dtype,
                       kernels::Workspace& workspace)
    : batch_(timesteps.size(0)), tokens_(timesteps.size(1)) {
  auto [distinct, index, counts] =
      at::_unique2(timesteps.flatten(), /*sorted=*/true, /*return_inverse=*/true);
  index_ = index;
  const std::int64_t count = distinct.size(0), width = layer.linear_2.out;
  embedding_ = workspace.take({count, width}, dtype);
  rows_ = workspace.take({count, layer.rows * width}, dtype);

  const kernels::Workspace::Scope scope(workspace);
  at::Tensor hidden = workspace.take({count, width}, dtype);
  nn::linear(layer.linear_1, timestep_sinusoid(distinct).to(dtype), {}, workspace, hidden);
  nn::linear(layer.linear_2, at::silu_(hidden), {}, workspace, embedding_);
  at::silu_out(hidden, embedding_);
  nn::linear(layer.linear, hidden, {}, workspace, rows_);
  rows_ = rows_.unflatten(-1, {layer.rows, width});
}

kernels::RowVectors Modulation::sum(const at::Tensor& distinct, const at::Tensor& vector,
                                    kernels::Workspace& workspace) const {
  at::Tensor vectors = workspace.take(distinct.sizes(), distinct.scalar_type());
  at::add_out(vectors, distinct, vector.to(distinct.scalar_type()));
  if (vectors.size(0) == 1) return vectors.unsqueeze(0);  // [1, 1, width]
  if (tokens_ == 1) return vectors.index_select(0, index_).unflatten(0, {batch_, 1});
  return {vectors, index_};
}

kernels::RowVectors Modulation::row(const at::Tensor& table, std::int64_t row,
                                    kernels::Workspace& workspace) const {
  return sum(rows_.select(1, row), table.select(0, row), workspace);
}

kernels::RowVectors Modulation::embedding(const at::Tensor& table, std::int64_t row,
                                          kernels::Workspace& workspace) const {
  return sum(embedding_, table.select(0, row), workspace);
}

}  // namespace sluice::ltx2
