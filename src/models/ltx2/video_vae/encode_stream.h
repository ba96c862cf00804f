#pragma once
// Encodes frames piece by piece: frames go in as they are read, latent frames come out as soon as they are
// determined.  The result does not depend on how the clip is cut, and memory does not depend on its length.
//
//   VideoEncodeStream stream(encoder, source, at::kFloat, [&](const at::Tensor& mean) { … });
//   while (auto frame = reader.next()) stream.push(frame, …);

#include "models/ltx2/video_vae/encoder.h"
#include "models/ltx2/video_vae/time_stream.h"
#include "weights/weight_source.h"

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

namespace sluice::ltx2 {

// Latent frames of a clip, in order.
struct EncodedFrames {
  at::Tensor mean;    // [1, latent_channels, n, h, w], f32, denormalised: the mode of the posterior
  at::Tensor logvar;  // [1, 1, n, h, w], f32, clamped to [-30, 20]; one for all channels
};
using LatentSink = std::function<void(const EncodedFrames& latents)>;

// How much of a clip goes through a stage at once, at the rate of the frames.
struct EncodePiece {
  std::int64_t frames = 8;
};

class VideoEncodeStream {
 public:
  // Leases the encoder's weights until it goes; one stream encodes one clip.  `compute`: f32 or bf16.
  VideoEncodeStream(const VideoEncoder& encoder, weights::WeightSource& source, at::ScalarType compute,
                    LatentSink sink, EncodePiece piece = {});
  ~VideoEncodeStream();
  VideoEncodeStream(const VideoEncodeStream&) = delete;
  VideoEncodeStream& operator=(const VideoEncodeStream&) = delete;

  // frames: [1, in_channels, n, height, width], f32, in [-1, 1]; height and width multiples of
  // spatial_ratio().  Error(internal) for other shapes, after the last piece, and if the clip ends with a
  // number of frames that is not temporal_ratio() · k + 1.
  void push(const at::Tensor& frames, Last last);

  std::int64_t state_bytes() const;  // what is kept between two pushes

 private:
  class Stages;
  std::unique_ptr<Stages> stages_;
};

// The clip as one tensor.
EncodedFrames encode_video(const VideoEncoder& encoder, weights::WeightSource& source, at::ScalarType compute,
                           const at::Tensor& frames, EncodePiece piece = {});

}  // namespace sluice::ltx2
