#pragma once
// Decodes video latents frame by frame.  Latent frames go in as they are there, decoded frames come out in
// order as soon as they are determined; the result does not depend on how the clip is cut, and memory does
// not depend on its length.
//
//   VideoDecodeStream stream(decoder, source, [&](const at::Tensor& frames) { encoder.write(frames); });
//   stream.push(denormalize(…, latents), Last::yes);
//
// Whole decode: the same, with the clip pushed at once and PieceLimit::none().

#include "models/ltx2/video_vae/decoder.h"
#include "models/ltx2/video_vae/time_stream.h"
#include "weights/weight_source.h"

#include <functional>
#include <limits>
#include <memory>
#include <vector>

namespace sluice::ltx2 {

// How much of a clip goes through a stage at once.  A stage's output is cut into pieces, and each runs
// through all later stages before the next: otherwise a temporal upsampler, or the end of the clip, would
// make tensors of its length.
struct PieceLimit {
  std::int64_t frames = std::numeric_limits<std::int64_t>::max();  // at the stage's own rate
  // Of the widest tensor a stage makes, but at least one frame.  Weights are packed once a piece (512 x 320
  // in bf16: 4 MiB take 3 % more processor time than 16); larger pieces hold more memory than they save time.
  std::int64_t bytes = std::int64_t{16} << 20;
  // As many frames as these make at the stage's rate: otherwise the first stages, which are small and have
  // the largest weights, would make what a clip needs depend on its length.
  std::int64_t latent_frames = 4;

  static PieceLimit none() {
    constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();
    return {.bytes = kAll, .latent_frames = kAll};
  }
  // Of a stage whose widest tensor has so many bytes a frame, at `rate` frames a latent frame.
  std::int64_t at(std::int64_t frame_bytes, std::int64_t rate) const;
};

// [batch, out_channels, n, height, width], about [-1, 1], not clamped; n > 0.  In the latents' dtype.
using FrameSink = std::function<void(const at::Tensor& frames)>;

class VideoDecodeStream {
 public:
  // Leases the decoder's weights until it goes; one stream decodes one clip.
  VideoDecodeStream(const VideoDecoder& decoder, weights::WeightSource& source, FrameSink sink,
                    PieceLimit limit = {});
  VideoDecodeStream(const VideoDecodeStream&) = delete;
  VideoDecodeStream& operator=(const VideoDecodeStream&) = delete;

  // latents: [batch, latent_channels, n, height, width], denormalised, f32 or bf16: the compute dtype.
  // Error(internal) after the last piece, for other shapes, and if the clip ends without a frame.
  void push(const at::Tensor& latents, Last last);

  std::int64_t state_bytes() const;  // what is kept between two pushes

 private:
  void feed(std::size_t stage, at::Tensor x, Last last);
  std::int64_t piece_frames(std::size_t stage, const at::Tensor& x) const;
  void check_latents(const at::Tensor& latents) const;

  const VideoDecoder& decoder_;
  weights::WeightLease lease_;
  FrameSink sink_;
  PieceLimit limit_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<std::int64_t> rates_;  // of each stage's input, in frames a latent frame
  bool started_ = false;
  bool ended_ = false;
};

// The clip as one tensor: [batch, latent_channels, F, h, w], denormalised
// -> [batch, out_channels, frames, H, W].
at::Tensor decode_video(const VideoDecoder& decoder, weights::WeightSource& source, const at::Tensor& latents,
                        PieceLimit limit = {});

}  // namespace sluice::ltx2
