// gemma3/*, connectors/*: from token ids to the text encoder's states, from states to what the transformer
// attends to.
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/text/gemma.h"
#include "models/ltx2/text/gemma_keys.h"
#include "parity/registry.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

#include <vector>

namespace sluice::parity {
namespace {

struct Prompt {
  std::vector<ltx2::TokenId> ids;  // without padding
  std::int64_t offset = 0;         // padding in front
};

Prompt unpadded(const at::Tensor& ids, const at::Tensor& mask) {
  Prompt prompt;
  for (std::int64_t i = 0; i < ids.size(0); ++i) {
    if (mask[i].item<std::int64_t>() != 0) {
      prompt.ids.push_back(ids[i].item<ltx2::TokenId>());
    } else if (prompt.ids.empty()) {
      prompt.offset = i + 1;
    } else {
      throw MalformedCase("io: 'attention_mask' pads behind a prompt; prompts are padded on the left");
    }
  }
  return prompt;
}

Results run_gemma3(const Case& parity_case) {
  const ltx2::GemmaEncoder encoder(
      ltx2::GemmaConfig::parse(parity_case.config(), parity_case.manifest().full_name()));
  const Checkpoint checkpoint = Checkpoint::open(parity_case.weights());
  const weights::ComponentTable table = ltx2::gemma_table(checkpoint);
  weights::account(table, encoder.groups(), ltx2::gemma_ignored());
  const auto source =
      weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(checkpoint));

  const at::Tensor& ids = parity_case.input("input_ids");  // [batch, tokens]
  const at::Tensor& mask = parity_case.input("attention_mask");
  at::Tensor states =
      at::zeros({ids.size(0), ids.size(1), encoder.config.hidden_size, encoder.config.states()});
  for (std::int64_t row = 0; row < ids.size(0); ++row) {
    const Prompt prompt = unpadded(ids[row], mask[row]);
    const at::Tensor got =
        ltx2::stacked_hidden_states(encoder, *source, {.ids = prompt.ids, .position_offset = prompt.offset});
    states[row].narrow(0, prompt.offset, got.size(0)).copy_(got);
  }
  Results results;
  results.add("hidden_states", states);
  return results;
}

// What a connector without registers makes of padding means nothing: the cases hold zeros there.
at::Tensor comparable(const ltx2::ConnectorConfig& config, const at::Tensor& text, const at::Tensor& mask) {
  return config.num_learnable_registers > 0 ? text : text * mask.unsqueeze(-1);
}

Results run_connectors(const Case& parity_case) {
  if (parity_case.param<std::string>("padding_side") != "left")
    throw MalformedCase("manifest: 'padding_side' is not left; prompts are padded on the left");
  const ltx2::Connectors connectors(
      ltx2::ConnectorsConfig::parse(parity_case.config(), parity_case.manifest().full_name()));
  const auto source = test::open_weights(parity_case.weights(), connectors.groups());
  const at::Tensor& states = parity_case.input("text_encoder_hidden_states");
  const at::Tensor& mask = parity_case.input("attention_mask");
  const ltx2::TextContext context = ltx2::text_context(connectors, *source, states, mask, at::kFloat);
  Results results;
  results.add("normalized", ltx2::norm_states(connectors.config(), states, mask));
  results.add("video_embeds", comparable(connectors.config().video, context.video_text, mask));
  results.add("audio_embeds", comparable(connectors.config().audio, context.audio_text, mask));
  results.add("attention_mask", context.mask);
  return results;
}

}  // namespace

void add_text(Registry& registry) {
  registry.add("gemma3", "", run_gemma3);
  registry.add("connectors", "", run_connectors);
}

}  // namespace sluice::parity
