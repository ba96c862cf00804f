#pragma once
// One block of the dual-stream transformer: self-attention of each stream, attention to the text, attention
// between the streams, feed-forward; each modulated by the timestep.

#include "kernels/workspace.h"
#include "models/ltx2/transformer/config.h"
#include "models/ltx2/transformer/modulation.h"
#include "models/ltx2/transformer/positions.h"
#include "nn/attention.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sluice::ltx2 {

struct StreamBlock {              // what a block holds for one stream
  nn::Attention self_attention;   // attn1
  nn::Attention text_attention;   // attn2
  nn::Attention cross_attention;  // queries of this stream, keys and values of the other
  nn::FeedForward feed_forward;
  at::Tensor table;         // scale_shift_table [9 or 6, width]
  at::Tensor prompt_table;  // [2, width]: shift, scale
  at::Tensor cross_table;   // [5, width]: a2v scale, a2v shift, v2a scale, v2a shift, gate
};

struct Block {
  StreamBlock video;
  StreamBlock audio;
  weights::ParameterGroup parameters;
};

// With the parameters of the streams that it has.
void declare(Block& block, const TransformerConfig& config, Modalities modalities, std::int64_t index);

struct StreamModulation {
  Modulation time;        // 9 or 6 rows
  Modulation prompt;      // 2 rows; unused without prompt_adaln
  Modulation cross;       // 4 rows
  Modulation cross_gate;  // 1 row
};

struct StreamContext {  // what does not change from block to block, but for the perturbation
  StreamModulation modulation;
  at::Tensor text;               // [batch, text tokens, text_dim]
  at::Tensor text_bias;          // added to the scores; undefined: all text is seen
  at::Tensor self_bias;          // [batch, 1, tokens, tokens]; undefined: none
  at::Tensor perturbation_mask;  // [batch, 1, 1]; undefined: this stream of the block is not perturbed
};

struct BlockContext {
  StreamContext video;
  StreamContext audio;
  const Positions* positions = nullptr;
  bool isolate_modalities = false;
};

struct Streams {     // undefined where the model works without the stream
  at::Tensor video;  // [batch, video tokens, video width]
  at::Tensor audio;  // [batch, audio tokens, audio width]
};

// Updates the streams in place.  What lives meanwhile comes from the workspace.
void block_forward(const Block& block, const TransformerConfig& config, const BlockContext& context,
                   kernels::Workspace& workspace, Streams& x);

}  // namespace sluice::ltx2
