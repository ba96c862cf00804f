// video_vae/decode_*: normalized latents to frames; whole, streamed, and in the reference's tiles.
// video_vae/encode_*: frames to latents; whole and streamed.
#include "models/ltx2/video_vae/decode_clip.h"
#include "models/ltx2/video_vae/encode_stream.h"
#include "parity/registry.h"
#include "support/fixture.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace sluice::parity {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// `causal` of the reference's decode() overrides the config; null leaves it alone.
void apply_causal(ltx2::VideoVaeConfig& config, const Case& parity_case) {
  config.decoder_causal = parity_case.param_or("causal", config.decoder_causal);
}

at::Tensor decode_in_pieces(const ltx2::VideoDecoder& decoder, weights::WeightSource& source,
                            const at::Tensor& latents) {
  std::vector<at::Tensor> frames;
  ltx2::VideoDecodeStream stream(
      decoder, source, [&](const at::Tensor& piece) { frames.push_back(piece.clone()); }, {.frames = 1});
  const std::int64_t count = latents.size(2);
  for (std::int64_t i = 0; i < count; ++i)
    stream.push(latents.narrow(2, i, 1), i + 1 == count ? ltx2::Last::yes : ltx2::Last::no);
  return at::cat(frames, 2);
}

ltx2::VideoVaeConfig config_of(const Case& parity_case) {
  auto config = ltx2::VideoVaeConfig::parse(parity_case.config(), parity_case.manifest().full_name());
  apply_causal(config, parity_case);
  return config;
}

at::Tensor denormalized(const ltx2::VideoDecoder& decoder, weights::WeightSource& source,
                        const Case& parity_case) {
  const auto lease = source.acquire(decoder.statistics_group());
  return ltx2::denormalize(decoder.statistics(), decoder.config().scaling_factor,
                           parity_case.input("latents_normalized"));
}

Results run_video_decode(const Case& parity_case) {
  const ltx2::VideoDecoder decoder(config_of(parity_case));
  const auto source =
      test::open_weights(parity_case.weights(), decoder.groups(), ltx2::VideoDecoder::ignore_rules());
  const at::Tensor latents = denormalized(decoder, *source, parity_case);
  Results results;
  results.add("latents", latents);
  results.add("sample", ltx2::decode_video(decoder, *source, latents, ltx2::PieceLimit::none()));
  const auto streamed =
      test::all_close(decode_in_pieces(decoder, *source, latents), parity_case.wanted("sample"),
                      parity_case.manifest().outputs.at("sample").tolerance);
  results.claim("streamed frame by frame", static_cast<bool>(streamed), streamed.message());
  return results;
}

// A size that is missing, or null, leaves the reference's default; one axis tiles where its case names it.
ltx2::ReferenceTiling tiling_of(const Case& parity_case) {
  ltx2::ReferenceTiling tiling;
  tiling.in_space = parity_case.has_param("tile_sample_min");
  tiling.in_time = parity_case.has_param("tile_sample_min_num_frames");
  tiling.tile_height = tiling.tile_width = parity_case.param_or("tile_sample_min", tiling.tile_height);
  tiling.stride_height = tiling.stride_width =
      parity_case.param_or("tile_sample_stride", tiling.stride_height);
  tiling.tile_frames = parity_case.param_or("tile_sample_min_num_frames", tiling.tile_frames);
  tiling.stride_frames = parity_case.param_or("tile_sample_stride_num_frames", tiling.stride_frames);
  return tiling;
}

Results run_tiled_decode(const Case& parity_case) {
  const ltx2::VideoDecoder decoder(config_of(parity_case));
  const auto source =
      test::open_weights(parity_case.weights(), decoder.groups(), ltx2::VideoDecoder::ignore_rules());
  const at::Tensor latents = denormalized(decoder, *source, parity_case);
  const ltx2::LatentClip clip{.batch = latents.size(0),
                              .frames = latents.size(2),
                              .height = latents.size(3),
                              .width = latents.size(4)};
  const auto plan = ltx2::plan_decode(decoder.config(), clip, {.compute = at::kFloat, .weights = at::kFloat},
                                      ltx2::DecodeWay::tiled, kNoLimit, tiling_of(parity_case));
  std::vector<at::Tensor> frames;
  ltx2::decode_clip(decoder, *source, latents, plan,
                    [&](const at::Tensor& piece) { frames.push_back(piece.clone()); }, {});
  Results results;
  results.add("latents", latents);
  results.add("sample", at::cat(frames, 2));
  return results;
}

// Pushes the clip in parts of these lengths, again and again.
ltx2::EncodedFrames encode_in_parts(const ltx2::VideoEncoder& encoder, weights::WeightSource& source,
                                    const at::Tensor& video, const std::vector<std::int64_t>& parts,
                                    std::int64_t piece) {
  std::vector<at::Tensor> means, logvars;
  ltx2::VideoEncodeStream stream(encoder, source, at::kFloat,
                                 [&](const ltx2::EncodedFrames& latents) {
                                   means.push_back(latents.mean);
                                   logvars.push_back(latents.logvar);
                                 },
                                 {.frames = piece});
  const std::int64_t count = video.size(2);
  std::size_t part = 0;
  for (std::int64_t start = 0; start < count;) {
    const std::int64_t n = std::min(parts[part++ % parts.size()], count - start);
    stream.push(video.narrow(2, start, n), start + n == count ? ltx2::Last::yes : ltx2::Last::no);
    start += n;
  }
  return {.mean = at::cat(means, 2), .logvar = at::cat(logvars, 2)};
}

void claim_same(Results& results, const Case& parity_case, const std::string& how,
                const ltx2::EncodedFrames& got) {
  const at::Tensor& logvar = parity_case.wanted("logvar");
  for (const auto& [name, tensor] :
       {std::pair("mean", got.mean), std::pair("logvar", got.logvar.expand_as(logvar))}) {
    const auto close =
        test::all_close(tensor, parity_case.wanted(name), parity_case.manifest().outputs.at(name).tolerance);
    results.claim(std::string(name) + " streamed " + how, static_cast<bool>(close), close.message());
  }
}

Results run_video_encode(const Case& parity_case) {
  const std::string where = parity_case.manifest().full_name();
  const ltx2::VideoDecoder decoder(ltx2::VideoVaeConfig::parse(parity_case.config(), where));
  const ltx2::VideoEncoder encoder(ltx2::VideoEncoderConfig::parse(parity_case.config(), where));
  const auto source =
      test::open_weights(parity_case.weights(), {&decoder.statistics_group(), &encoder.encoder_group()});
  const at::Tensor& video = parity_case.input("video");
  const ltx2::EncodedFrames whole =
      ltx2::encode_video(encoder, *source, at::kFloat, video, {.frames = video.size(2)});
  Results results;
  results.add("mean", whole.mean);
  results.add("logvar", whole.logvar.expand_as(parity_case.wanted("logvar")));
  const auto lease = source->acquire(decoder.statistics_group());
  results.add("latents_normalized",
              ltx2::normalize(decoder.statistics(), decoder.config().scaling_factor, whole.mean));
  claim_same(results, parity_case, "frame by frame",
             encode_in_parts(encoder, *source, video, {1}, /*piece=*/1));
  claim_same(results, parity_case, "in odd pieces",
             encode_in_parts(encoder, *source, video, {3, 1, 5}, /*piece=*/3));
  return results;
}

}  // namespace

void add_video_vae(Registry& registry) {
  registry.add("video_vae", "decode_f", run_video_decode);
  registry.add("video_vae", "encode_f", run_video_encode);
  registry.add("video_vae", "decode_tiled", run_tiled_decode);
  registry.add("video_vae", "decode_temporal_tiled", run_tiled_decode);
}

}  // namespace sluice::parity
