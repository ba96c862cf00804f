#include "models/ltx2/video_vae/decode_clip.h"

#include "models/ltx2/video_vae/frame_store.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

namespace sluice::ltx2 {
namespace {

constexpr std::int64_t kTime = 2;  // axes of [batch, channels, frames, height, width]
constexpr std::int64_t kHeight = 3;
constexpr std::int64_t kWidth = 4;

void check_clip(const LatentClip& clip, const at::Tensor& latents) {
  if (latents.dim() == 5 && latents.size(0) == clip.batch && latents.size(kTime) == clip.frames &&
      latents.size(kHeight) == clip.height && latents.size(kWidth) == clip.width)
    return;
  throw Error(ErrorKind::internal,
              fmt::format("video decoder: the plan is for {} clips of {} x {} x {} latents, there are others",
                          clip.batch, clip.width, clip.height, clip.frames));
}

at::Tensor part_of(const at::Tensor& latents, const TilePlace& place) {
  return latents.narrow(kHeight, place.top, place.height).narrow(kWidth, place.left, place.width);
}

// Tiles one after another over the whole clip; with the last one's frames all is there to put together.
class TiledStream {
 public:
  TiledStream(const VideoDecoder& decoder, weights::WeightSource& source, const DecodePlan& plan,
              const FrameSink& sink, const std::filesystem::path& folder)
      : decoder_(decoder),
        source_(source),
        plan_(plan),
        sink_(sink),
        places_(tile_places(*plan.space, plan.clip.height, plan.clip.width)),
        store_(folder) {}

  void decode(const at::Tensor& latents) {
    const std::size_t last = places_.size() - 1;
    for (std::size_t tile = 0; tile < last; tile++)
      stream(latents, tile, [&](const at::Tensor& frames) { store_.append(tile, frames); });
    std::int64_t index = 0;
    stream(latents, last, [&](const at::Tensor& frames) {
      for (std::int64_t i = 0; i < frames.size(kTime); i++)
        sink_(joined(index++, frames.narrow(kTime, i, 1)));
    });
  }

 private:
  void stream(const at::Tensor& latents, std::size_t tile, const FrameSink& sink) {
    VideoDecodeStream decode(decoder_, source_, sink, plan_.pieces);
    decode.push(part_of(latents, places_[tile]), Last::yes);
  }

  at::Tensor joined(std::int64_t index, const at::Tensor& last) const {
    std::size_t tile = 0;
    return join_tiles(places_, *plan_.space, decoder_.config().spatial_ratio(), [&](const TilePlace&) {
      return ++tile == places_.size() ? last : store_.frame(tile - 1, index);
    });
  }

  const VideoDecoder& decoder_;
  weights::WeightSource& source_;
  const DecodePlan& plan_;
  const FrameSink& sink_;
  const std::vector<TilePlace> places_;
  FrameStore store_;
};

// As AutoencoderKLLTX2Video.tiled_decode and _temporal_tiled_decode of diffusers 0.42.1.  A tile after the
// first in time begins with the single frame that a clip begins with, and is put one frame later than the
// latents it was made of say; the reference has that shift too.
class ReferenceTiles {
 public:
  ReferenceTiles(const VideoDecoder& decoder, weights::WeightSource& source, const DecodePlan& plan,
                 const FrameSink& sink)
      : decoder_(decoder), source_(source), plan_(plan), sink_(sink) {}

  void decode(const at::Tensor& latents) const {
    if (!plan_.time) return sink_(decode_tiles(latents));
    const TimeTiles& time = *plan_.time;
    const std::int64_t count = latents.size(kTime);
    std::int64_t missing = decoder_.config().temporal_ratio() * (count - 1) + 1;
    at::Tensor before;  // what the next tile blends with
    for (std::int64_t start = 0; start < count; start += time.axis.stride) {
      const std::int64_t n = std::min(time.axis.tile + 1, count - start);
      if (start > 0 && n == 1) return;  // its only frame would be dropped
      at::Tensor tile = decode_tiles(latents.narrow(kTime, start, n));
      if (start > 0) {
        tile = tile.narrow(kTime, 0, tile.size(kTime) - 1);
        blend_into(tile, before, kTime, time.blended_frames);
      }
      const std::int64_t kept = std::min({tile.size(kTime), time.kept_frames + (start > 0 ? 0 : 1), missing});
      const std::int64_t rest = std::min(tile.size(kTime), time.blended_frames);
      before = tile.narrow(kTime, tile.size(kTime) - rest, rest).clone();
      missing -= kept;
      if (kept) sink_(tile.narrow(kTime, 0, kept));
    }
  }

 private:
  at::Tensor decode_tiles(const at::Tensor& latents) const {
    if (!plan_.space) return decode_tile(latents);
    const auto places = tile_places(*plan_.space, latents.size(kHeight), latents.size(kWidth));
    return join_tiles(places, *plan_.space, decoder_.config().spatial_ratio(),
                      [&](const TilePlace& place) { return decode_tile(part_of(latents, place)); });
  }

  // [batch, channels, frames, H, W] of one piece of latents.
  at::Tensor decode_tile(const at::Tensor& latents) const {
    const VideoVaeConfig& config = decoder_.config();
    at::Tensor out = at::empty(
        {latents.size(0), config.out_channels, config.temporal_ratio() * (latents.size(kTime) - 1) + 1,
         config.spatial_ratio() * latents.size(kHeight), config.spatial_ratio() * latents.size(kWidth)},
        latents.options());
    std::int64_t done = 0;
    VideoDecodeStream stream(
        decoder_, source_,
        [&](const at::Tensor& frames) {
          out.narrow(kTime, done, frames.size(kTime)).copy_(frames);
          done += frames.size(kTime);
        },
        plan_.pieces);
    stream.push(latents, Last::yes);
    return out;
  }

  const VideoDecoder& decoder_;
  weights::WeightSource& source_;
  const DecodePlan& plan_;
  const FrameSink& sink_;
};

}  // namespace

void decode_clip(const VideoDecoder& decoder, weights::WeightSource& source, const at::Tensor& given,
                 const DecodePlan& plan, const FrameSink& sink, const std::filesystem::path& folder) {
  check_clip(plan.clip, given);
  const at::Tensor latents = given.to(plan.dtypes.compute);
  if (plan.way == DecodeWay::tiled) return ReferenceTiles(decoder, source, plan, sink).decode(latents);
  if (plan.space) return TiledStream(decoder, source, plan, sink, folder).decode(latents);
  VideoDecodeStream stream(decoder, source, sink, plan.pieces);
  stream.push(latents, Last::yes);
}

}  // namespace sluice::ltx2
