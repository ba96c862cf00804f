#include "models/ltx2/video_vae/encode_memory.h"

#include "models/ltx2/video_vae/stream_rehearsal.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace sluice::ltx2 {
namespace {

// Goes through a clip as VideoEncodeStream does.
class Rehearsal {
 public:
  Rehearsal(const VideoEncoderConfig& config, const EncodePicture& picture, at::ScalarType compute);

  // The clip goes in as pieces of `piece` frames.
  const Arena& run(std::int64_t frames, std::int64_t piece);

 private:
  using Frames = RehearsedFrames;

  struct Stage {
    ConvSize size;                         // of its convolutions, but for frames
    bool residual = false;                 // two of them
    std::optional<DownBlockConfig> group;  // a downsampler's
    StreamRehearsal::Conv conv1, conv2;
    std::vector<Arena::Block> waiting;  // convolved frames that a downsampler keeps
  };

  void encode(Frames x, Last last);
  Frames push(Stage& stage, std::int64_t n, Last last);
  Frames push_downsampler(Stage& stage, std::int64_t n, Last last);

  StreamRehearsal stream_;
  std::vector<Stage> stages_;
};

std::int64_t values(const ConvSize& size, std::int64_t channels) {
  return channels * size.positions();
}

Rehearsal::Rehearsal(const VideoEncoderConfig& config, const EncodePicture& picture, at::ScalarType compute)
    : stream_(config.causal, compute) {
  std::int64_t height = picture.height / config.patch_size, width = picture.width / config.patch_size;
  auto add = [&](std::int64_t in, std::int64_t out) -> Stage& {
    return stages_.emplace_back(Stage{.size = {1, 0, height, width, in, out, config.padding}});
  };
  auto add_resnets = [&](std::int64_t count, std::int64_t channels) {
    for (std::int64_t i = 0; i < count; i++) add(channels, channels).residual = true;
  };
  add(config.in_channels * config.patch_size * config.patch_size, config.first_channels);
  for (const DownBlockConfig& block : config.down_blocks) {
    add_resnets(block.layers, block.channels);
    add(block.channels, block.conv_channels()).group = block;
    height /= block.stride_h;
    width /= block.stride_w;
  }
  add_resnets(config.mid_layers, config.mid_channels());
  add(config.mid_channels(), config.latent_channels + 1);
}

// DownsampleStage::push.
RehearsedFrames Rehearsal::push_downsampler(Stage& stage, std::int64_t n, Last last) {
  Arena& arena = stream_.arena();
  Arena::Block old = stage.conv1.history;
  const std::int64_t stride = stage.group->stride_t;
  Frames h = stream_.convolve(stage.size, stage.conv1, {n, {}}, last,
                              {.old = StreamRehearsal::Old::keep, .lead = stride - 1});
  const std::int64_t there = static_cast<std::int64_t>(stage.waiting.size()) + h.count;
  const std::int64_t frame = stream_.bytes(values(stage.size, stage.size.out));
  std::vector<Arena::Block> before = std::move(stage.waiting);
  stage.waiting.clear();
  for (std::int64_t i = 0; i < there % stride; i++) stage.waiting.push_back(arena.take(frame));
  Frames out{there / stride, arena.take(there / stride * stride * frame)};
  for (Arena::Block& block : before) arena.give_back(block);
  arena.give_back(h.block);
  arena.give_back(old);
  return out;
}

// Stage::push.
RehearsedFrames Rehearsal::push(Stage& stage, std::int64_t n, Last last) {
  if (stage.residual) return stream_.residual(stage.size, stage.conv1, stage.conv2, n, last);
  if (stage.group) return push_downsampler(stage, n, last);
  return stream_.convolve(stage.size, stage.conv1, {n, {}}, last, {});
}

// What goes into a stage is given back when its output is there.
void Rehearsal::encode(Frames x, Last last) {
  Arena& arena = stream_.arena();
  for (Stage& stage : stages_) {
    Frames y = push(stage, x.count, last);
    arena.give_back(x.block);
    x = y;
    if (x.count == 0 && last == Last::no) return;
  }
  const ConvSize& size = stages_.back().size;
  arena.brief(x.count * values(size, size.out) * static_cast<std::int64_t>(sizeof(float)));
  arena.give_back(x.block);
}

const Arena& Rehearsal::run(std::int64_t frames, std::int64_t piece) {
  const ConvSize& first = stages_.front().size;
  for (std::int64_t start = 0; start < frames; start += piece) {
    const std::int64_t n = std::min(piece, frames - start);
    Frames gathered{n, stream_.arena().take(stream_.bytes(n * values(first, first.in)))};
    encode(gathered, start + n == frames ? Last::yes : Last::no);
  }
  return stream_.arena();
}

}  // namespace

Bytes encode_memory(const VideoEncoderConfig& config, const EncodePicture& picture, at::ScalarType compute,
                    EncodePiece piece) {
  // After as many pieces as a latent frame has frames, groups lie in pieces as they did before.
  const std::int64_t pieces = config.temporal_ratio() + 2;
  const std::int64_t frames =
      std::clamp<std::int64_t>(piece.frames, 1, std::max<std::int64_t>(picture.frames, 1));
  return static_cast<Bytes>(
      Rehearsal(config, picture, compute).run(std::min(picture.frames, pieces * frames), frames).extent());
}

}  // namespace sluice::ltx2
