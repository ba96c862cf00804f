// rope/*, adaln/*, attention/*: the transformer's parts, each on its own.
#include "models/ltx2/transformer/modulation.h"
#include "models/ltx2/transformer/positions.h"
#include "nn/attention.h"
#include "nn/rope.h"
#include "parity/registry.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

#include <array>
#include <vector>

namespace sluice::parity {
namespace {

using weights::ParameterGroup;
using weights::ParameterScope;

// The reference's rotary module serves one modality and has keys of its own.
struct RotaryModule {
  bool video = false;
  bool time_axis_only = false;  // cross_video_*: between the streams only time counts
  ltx2::TransformerConfig positions;
  nn::RopeConfig rope;
};

RotaryModule rotary_module(const Case& parity_case) {
  RotaryModule module;
  module.video = parity_case.config_value<std::string>("modality") == "video";
  module.time_axis_only = parity_case.name().starts_with("cross_");
  module.positions.causal_offset = parity_case.config_value<std::int64_t>("causal_offset");
  std::vector<double> max_pos = {parity_case.config_value<double>("base_num_frames")};
  if (module.video) {
    module.positions.vae_scale = parity_case.config_value<std::array<std::int64_t, 3>>("scale_factors");
    if (!module.time_axis_only) {
      max_pos.push_back(parity_case.config_value<double>("base_height"));
      max_pos.push_back(parity_case.config_value<double>("base_width"));
    }
  } else {
    module.positions.audio_scale = parity_case.config_value<std::vector<std::int64_t>>("scale_factors").at(0);
    module.positions.audio_sampling_rate = parity_case.config_value<std::int64_t>("sampling_rate");
    module.positions.audio_hop_length = parity_case.config_value<std::int64_t>("hop_length");
  }
  module.rope = {.dim = parity_case.config_value<std::int64_t>("dim"),
                 .heads = parity_case.config_value<std::int64_t>("num_attention_heads"),
                 .max_pos = std::move(max_pos),
                 .theta = parity_case.config_value<double>("theta"),
                 .double_precision = parity_case.config_value<bool>("double_precision"),
                 .layout = nn::parse_rope_layout(parity_case.config_value<std::string>("rope_type"))};
  return module;
}

at::Tensor coordinates(const RotaryModule& module, const Case& parity_case) {  // [1, axes, tokens, 2]
  const auto frames = parity_case.param<std::int64_t>("num_frames");
  if (!module.video)
    return ltx2::audio_coordinates(module.positions, frames, parity_case.param_or<std::int64_t>("shift", 0));
  const ltx2::VideoGrid grid{.frames = frames,
                             .height = parity_case.param<std::int64_t>("height"),
                             .width = parity_case.param<std::int64_t>("width")};
  const at::Tensor all = ltx2::video_coordinates(module.positions, grid, parity_case.param<double>("fps"));
  return module.time_axis_only ? all.narrow(1, 0, 1) : all;
}

Results run_rope(const Case& parity_case) {
  const RotaryModule module = rotary_module(parity_case);
  const at::Tensor one = coordinates(module, parity_case);
  const at::Tensor coords = one.expand({parity_case.param<std::int64_t>("batch_size"), -1, -1, -1});
  const at::Tensor middles = (coords.select(-1, 0) + coords.select(-1, 1)) / 2.0;
  const nn::RopeTable table = nn::make_rope_table(module.rope, middles);
  Results results;
  results.add("coords", coords);
  results.add("cos", table.cos);
  results.add("sin", table.sin);
  results.add("rotated", nn::apply_rope(table, module.rope.layout, parity_case.input("x")));
  return results;
}

Results run_adaln(const Case& parity_case) {
  ParameterGroup group{.name = "adaln"};
  ltx2::AdaLayerNorm layer;
  ltx2::declare(ParameterScope(group), layer, parity_case.config_value<std::int64_t>("embedding_dim"),
                parity_case.config_value<std::int64_t>("num_mod_params"));
  const auto source = test::open_weights(parity_case.weights(), {&group});
  const auto lease = source->acquire(group);
  const at::Tensor& timestep = parity_case.input("timestep");
  kernels::Workspace workspace;
  const kernels::Workspace::Scope scope(workspace);
  const ltx2::Modulation modulation(layer, timestep.unsqueeze(1), at::kFloat, workspace);
  const at::Tensor nothing = at::zeros({layer.rows, layer.linear_2.out});  // beside it in the table
  auto of_each = [&](const kernels::RowVectors& vectors) {
    return vectors.gathered(timestep.size(0), 1).expand({timestep.size(0), 1, -1}).squeeze(1);
  };
  std::vector<at::Tensor> rows;
  for (std::int64_t row = 0; row < layer.rows; ++row)
    rows.push_back(of_each(modulation.row(nothing, row, workspace)));
  Results results;
  results.add("sinusoid", ltx2::timestep_sinusoid(timestep));
  results.add("embedded", of_each(modulation.embedding(nothing, 0, workspace)).clone());
  results.add("modulation", at::cat(rows, 1));
  return results;
}

nn::AttentionConfig attention_config(const Case& parity_case) {
  const auto query_dim = parity_case.config_value<std::int64_t>("query_dim");
  const auto heads = parity_case.config_value<std::int64_t>("heads");
  if (parity_case.config_value<std::int64_t>("kv_heads") != heads)
    throw MalformedCase("config: LTX-2 has as many key heads as query heads");
  const auto& context = parity_case.config().at("cross_attention_dim");
  return {.query_dim = query_dim,
          .context_dim = context.is_null() ? query_dim : context.get<std::int64_t>(),
          .heads = heads,
          .head_dim = parity_case.config_value<std::int64_t>("dim_head"),
          .norm_eps = parity_case.config_value<double>("norm_eps"),
          .rope_layout = nn::parse_rope_layout(parity_case.config_value<std::string>("rope_type")),
          .gated = parity_case.config_value<bool>("apply_gated_attention")};
}

Results run_attention(const Case& parity_case) {
  ParameterGroup group{.name = "attention"};
  nn::Attention layer;
  nn::declare(ParameterScope(group), layer, attention_config(parity_case));
  const auto source = test::open_weights(parity_case.weights(), {&group});
  const auto lease = source->acquire(group);
  const nn::RopeTable query{parity_case.optional_input("query_cos"), parity_case.optional_input("query_sin")};
  const nn::RopeTable key{parity_case.optional_input("key_cos"), parity_case.optional_input("key_sin")};
  const at::Tensor bias = parity_case.optional_input("attention_bias");  // [batch, tokens or 1, keys]
  const nn::AttentionInput input{.x = parity_case.input("hidden_states"),
                                 .context = parity_case.optional_input("encoder_hidden_states"),
                                 .bias = bias.defined() ? bias.unsqueeze(1) : bias,
                                 .rope_q = query.cos.defined() ? &query : nullptr,
                                 .rope_k = key.cos.defined() ? &key : nullptr,
                                 .perturbation_mask = parity_case.optional_input("perturbation_mask")};
  Results results;
  results.add("hidden_states", nn::attention(layer, input));
  return results;
}

}  // namespace

void add_layers(Registry& registry) {
  registry.add("rope", "", run_rope);
  registry.add("adaln", "", run_adaln);
  registry.add("attention", "", run_attention);
}

}  // namespace sluice::parity
