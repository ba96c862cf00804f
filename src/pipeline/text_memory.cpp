#include "pipeline/text_memory.h"

#include "kernels/attention.h"
#include "kernels/packed_product.h"
#include "models/ltx2/connectors/feature_extractor.h"
#include "pipeline/text_phase.h"
#include "weights/stage.h"

#include <algorithm>
#include <numeric>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

Bytes as_bytes(std::int64_t count) {
  return static_cast<Bytes>(count);
}

std::int64_t sum(const std::vector<std::int64_t>& tokens) {
  return std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0});
}

Bytes attention_of(std::int64_t heads, std::int64_t dim, std::int64_t tokens, const TextShape& shape) {
  return kernels::attention_scratch(
      {.heads = heads, .tokens = tokens, .keys = tokens, .dim = dim, .dtype = shape.dtype}, shape.threads,
      kernels::attention_limits());
}

Bytes attention_of(const ltx2::ConnectorConfig& config, const TextShape& shape) {
  return attention_of(config.num_attention_heads, config.attention_head_dim, kTextTokens, shape);
}

Bytes bytes_of(const weights::ComponentTable& table,
               const std::vector<const weights::ParameterGroup*>& groups) {
  return weights::plan_stage(table, groups).bytes_once();
}

}  // namespace

Bytes TextMemory::most() const {
  return std::max({encoder, projections, connectors}) + scratch;
}

TextMemory text_memory(const ModelSet& models, const TextEncoder* encoder, const TextShape& shape) {
  const ltx2::ConnectorsConfig& config = models.connectors->config();
  const std::int64_t tokens = sum(shape.tokens);
  const std::int64_t longest = shape.tokens.empty() ? 0 : std::ranges::max(shape.tokens);
  const ltx2::FeatureMemory features = ltx2::feature_memory(config, tokens, shape.dtype, shape.limits);
  TextMemory memory;
  memory.projection_passes = ltx2::plan_shares(config, tokens, shape.dtype, shape.limits).passes;
  memory.projections = as_bytes(features.projecting);
  memory.scratch = ltx2::projection_scratch(config, shape.dtype) + kernels::product_scratch(shape.threads);
  if (encoder) {
    const ltx2::GemmaConfig& gemma = encoder->model->config;
    memory.encoder = as_bytes(ltx2::gemma_memory(gemma, shape.tokens, shape.dtype) + features.held) +
                     attention_of(gemma.num_attention_heads, gemma.head_dim, longest, shape);
    if (!memory.in_turn())
      memory.projections += as_bytes(tokens * gemma.hidden_size) * elementSize(shape.dtype);
  }
  const std::vector<std::int64_t> rows(shape.tokens.size(), kTextTokens);
  memory.connectors = as_bytes(ltx2::connectors_memory(config, rows, shape.dtype)) +
                      std::max(attention_of(config.video, shape), attention_of(config.audio, shape));
  return memory;
}

Bytes text_bytes_read(const ModelSet& models, const TextEncoder* encoder, const TextShape& shape) {
  const auto& connectors = *models.connectors;
  const weights::ComponentTable& table = models.table(ComponentKind::connectors);
  const std::int64_t tokens = sum(shape.tokens);
  const auto passes = ltx2::plan_shares(connectors.config(), tokens, shape.dtype, shape.limits).passes;
  Bytes total = bytes_of(table, connectors.pass()) +
                as_bytes(passes) * bytes_of(table, connectors.projections.groups());
  if (encoder) {
    const weights::Parameter& embeddings = encoder->model->embedding_group.parameters.front();
    const Bytes row = encoder->table.tensors.at(embeddings.name).size / as_bytes(embeddings.shape.front());
    total += bytes_of(encoder->table, encoder->model->pass()) + as_bytes(tokens) * row;
  }
  return total;
}

}  // namespace sluice::pipeline
