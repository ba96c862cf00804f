#pragma once
// The audio-video transformer of LTX-2 (reference: LTX2VideoTransformer3DModel of diffusers 0.42.1): noisy
// latents of both streams, text and a timestep in, velocities out (v = noise - x0).  The model owns no
// weights; forward() leases them block by block, and all passes of a step go through a block together, so
// that one lease serves them.  With one modality alone the other's parameters are left out, and passes have
// only that one's input; its result is that of a pass with isolated modalities.

#include "models/ltx2/transformer/block.h"
#include "weights/weight_source.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

namespace sluice::ltx2 {

struct StreamInput {
  at::Tensor latents;    // [batch, tokens, in_channels]; its dtype is the compute dtype
  at::Tensor text;       // [batch, text tokens, text_dim] (caption_channels with caption_projection)
  at::Tensor text_mask;  // [batch, text tokens], 1 = seen; undefined: all
  at::Tensor timestep;   // sigma · 1000, [batch] or [batch, tokens], f32
  at::Tensor sigma;      // the same without per-token values, [batch]
  at::Tensor self_mask;  // [batch, tokens, tokens] in [0, 1]; undefined: none.  Video only
};

// One evaluation of the model; a step has one to four for each of its clips.
struct Pass {
  StreamInput video;  // without latents where the model works without the stream
  StreamInput audio;
  at::Tensor keyframe_mask;  // [batch, video tokens, 1]; only for models with a keyframe embedding
  bool cross_timestep =
      true;  // cross-modal modulation follows the other stream's sigma (2.3); false: own timestep (2.0)
  bool isolate_modalities = false;
  std::set<std::int64_t> perturbed_blocks;  // spatio-temporal guidance
  Modalities perturbed_streams = Modalities::both;
  at::Tensor perturbation_mask;  // [batch], 0 = perturbed; undefined: all are
};

class Transformer {
 public:
  explicit Transformer(TransformerConfig config, Modalities modalities = Modalities::both);
  Transformer(const Transformer&) = delete;
  Transformer& operator=(const Transformer&) = delete;

  const TransformerConfig& config() const { return config_; }
  Modalities modalities() const { return modalities_; }
  std::vector<const weights::ParameterGroup*> groups() const;  // in the order of a pass

  // Told after each block with the streams of each pass; may throw to stop.
  using BlockObserver = std::function<void(std::int64_t block, const std::vector<Streams>&)>;

  // Velocities of each pass, [batch, tokens, out_channels], in the compute dtype: tensors of the workspace,
  // in the caller's scope, as is everything that lives meanwhile.
  std::vector<Streams> forward(weights::WeightSource& source, const Positions& positions,
                               const std::vector<Pass>& passes, kernels::Workspace& workspace,
                               const BlockObserver& observer = {}) const;
  // The same in memory of their own.
  std::vector<Streams> forward(weights::WeightSource& source, const Positions& positions,
                               const std::vector<Pass>& passes, const BlockObserver& observer = {}) const;

 private:
  struct CaptionProjection {
    nn::Linear linear_1, linear_2;
  };
  struct StreamEnds {  // what stands before and after the blocks for one stream
    nn::Linear proj_in, proj_out;
    AdaLayerNorm time, prompt, cross, cross_gate;
    CaptionProjection caption;
    at::Tensor table;  // [2, width]: shift, scale of the output norm
  };

  void declare_ends(const StreamConfig& own, StreamEnds& ends, bool video);
  void require_possible(const Pass& pass) const;
  BlockContext enter(const Pass& pass, const Positions& positions, kernels::Workspace& workspace,
                     Streams& x) const;
  StreamContext stream_context(const StreamInput& input, const StreamEnds& ends,
                               const at::Tensor& cross_timestep, kernels::Workspace& workspace) const;
  void run_block(std::size_t index, const std::vector<Pass>& passes, std::vector<BlockContext>& contexts,
                 kernels::Workspace& workspace, std::vector<Streams>& x) const;
  static void leave(const StreamEnds& ends, const StreamContext& context, const at::Tensor& x,
                    kernels::Workspace& workspace, at::Tensor& velocity);

  TransformerConfig config_;
  Modalities modalities_;
  StreamEnds video_;
  StreamEnds audio_;
  at::Tensor keyframe_embedding_;  // [1, width]
  // Two groups, since the modulation in front of the blocks is as large as a block and is done with there.
  weights::ParameterGroup entrance_, exit_;
  std::vector<Block> blocks_;
};

}  // namespace sluice::ltx2
