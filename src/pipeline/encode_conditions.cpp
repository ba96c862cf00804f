#include "pipeline/encode_conditions.h"

#include "base/allocator.h"
#include "kernels/scratch.h"
#include "models/ltx2/audio_vae/mel_frontend.h"
#include "models/ltx2/video_vae/encode_memory.h"
#include "models/ltx2/video_vae/latent_statistics.h"
#include "sampling/finite.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>

namespace sluice::pipeline {
namespace {

using ltx2::ComponentKind;

constexpr int kImageCrf = 33;  // what LTX-2.0 to 2.3 learned pictures at

media::FitSize pixels_of(const PlannedFrames& frames, const StageSettings& stage,
                         const sampling::VideoCompression& compression) {
  const auto latents = latents_of(frames, stage.video, compression);
  return {.width = static_cast<int>(latents.width * compression.pixels),
          .height = static_cast<int>(latents.height * compression.pixels)};
}

// Frames [1, 3, n, height, width] that a piece of the encoder takes.
class FramePiece {
 public:
  FramePiece(media::FitSize size, std::int64_t frames)
      : size_(size), memory_(at::empty({frames, 3, size.height, size.width}, at::kFloat)) {}

  void add(const media::RgbFrame& frame, media::Fit fit) {
    at::Tensor planes = memory_.select(0, count_++);
    media::fit_picture(frame, fit, size_,
                       {planes.mutable_data_ptr<float>(), static_cast<std::size_t>(planes.numel())});
  }
  bool full() const { return count_ == memory_.size(0); }
  at::Tensor take() { return memory_.narrow(0, 0, std::exchange(count_, 0)).transpose(0, 1).unsqueeze(0); }

 private:
  media::FitSize size_;
  at::Tensor memory_;
  std::int64_t count_ = 0;
};

media::RgbFrame next_frame(media::VideoReader& reader, const PlannedFrames& frames, std::int64_t index) {
  if (const auto frame = reader.next()) return *frame;
  throw Error(ErrorKind::corrupt_file,
              fmt::format("{}: it ends after {} frames, {} were announced", frames.file.string(),
                          frames.first + index, frames.first + frames.count),
              "the file is probably cut short: fetch it again");
}

class FrameEncoding {
 public:
  FrameEncoding(const ModelSet& models, weights::WeightSource& source, const Request& request,
                const Settings& settings, const StageSettings& stage, const FrameProgress& progress)
      : models_(models),
        source_(source),
        request_(request),
        settings_(settings),
        stage_(stage),
        progress_(progress) {
    for (const PlannedFrames& frames : settings.conditions.frames) total_ += frames.count;
  }

  at::Tensor encode(const PlannedFrames& frames) {
    std::vector<at::Tensor> latents;
    {
      ltx2::VideoEncodeStream stream(
          *models_.video_encoder, source_, settings_.dtype,
          [&](const ltx2::EncodedFrames& encoded) { latents.push_back(encoded.mean); });
      frames.source == FrameSource::image ? push_image(frames, stream) : push_video(frames, stream);
    }
    at::Tensor all = at::cat(latents, 2);
    sampling::check_finite(all, fmt::format("the latents of {}", frames.file.string()));
    const auto lease = source_.acquire(models_.video_decoder->statistics_group());
    return ltx2::normalize(models_.video_decoder->statistics(),
                           models_.video_decoder->config().scaling_factor, all);
  }

 private:
  void tell() { progress_(++done_, total_); }

  void push_image(const PlannedFrames& frames, ltx2::VideoEncodeStream& stream) {
    FramePiece piece(pixels_of(frames, stage_, models_.compression()), 1);
    {
      const media::Picture picture = media::recompress(media::read_picture(frames.file), image_crf(request_));
      piece.add(picture.view(), media_fit(request_.fit));
    }
    give_back_freed_memory();  // a large picture is gone before its encoding begins
    stream.push(piece.take(), ltx2::Last::yes);
    tell();
  }

  void push_video(const PlannedFrames& frames, ltx2::VideoEncodeStream& stream) {
    media::VideoReader reader(frames.file, request_.fps, frames.first);
    FramePiece piece(pixels_of(frames, stage_, models_.compression()),
                     std::min(frames.count, ltx2::EncodePiece{}.frames));
    for (std::int64_t index = 0; index < frames.count; ++index) {
      piece.add(next_frame(reader, frames, index), media_fit(request_.fit));
      const bool last = index + 1 == frames.count;
      if (piece.full() || last) stream.push(piece.take(), last ? ltx2::Last::yes : ltx2::Last::no);
      tell();
    }
  }

  const ModelSet& models_;
  weights::WeightSource& source_;
  const Request& request_;
  const Settings& settings_;
  const StageSettings& stage_;
  const FrameProgress& progress_;
  std::int64_t done_ = 0, total_ = 0;
};

at::Tensor samples_of(const media::Sound& sound) {
  auto channel = [](const std::vector<float>& samples) {
    return at::from_blob(const_cast<float*>(samples.data()), {static_cast<std::int64_t>(samples.size())},
                         at::kFloat);
  };
  return at::stack({channel(sound.left), channel(sound.right)});
}

// What the model hears: given, or of the clip that is retaken.
const std::filesystem::path& sound_file(const Request& request) {
  return request.audio.empty() ? request.videos.front().file : request.audio;
}

double clip_seconds(const Request& request) {
  return static_cast<double>(request.frames) / request.fps.value();
}

// The spectrogram's window looks half a window ahead.
constexpr double kBeyond = 0.1;  // seconds

}  // namespace

int image_crf(const Request& request) {
  return request.image_crf.value_or(kImageCrf);
}

media::Fit media_fit(Fit fit) {
  return fit == Fit::crop ? media::Fit::crop : fit == Fit::pad ? media::Fit::pad : media::Fit::stretch;
}

std::vector<at::Tensor> encode_frames(const ModelSet& models, Backends& backends, const Request& request,
                                      const Settings& settings, const StageSettings& stage,
                                      const FrameProgress& progress) {
  c10::InferenceMode no_graph;
  const std::vector<const weights::ParameterGroup*> order = {&models.video_encoder->encoder_group(),
                                                             &models.video_decoder->statistics_group()};
  auto source = backends.source(models.table(ComponentKind::vae), order);
  FrameEncoding encoding(models, *source, request, settings, stage, progress);
  std::vector<at::Tensor> latents;
  for (const PlannedFrames& frames : settings.conditions.frames) latents.push_back(encoding.encode(frames));
  kernels::release_scratch();
  return latents;
}

at::Tensor encode_sound(const ModelSet& models, Backends& backends, const Request& request,
                        const Settings& settings) {
  c10::InferenceMode no_graph;
  const std::filesystem::path& file = sound_file(request);
  const ltx2::MelFrontend frontend = ltx2::mel_frontend_of(models.audio_encoder->config());
  at::Tensor wave;
  {
    const media::Sound sound = media::read_sound(file, clip_seconds(request) + kBeyond);
    wave = ltx2::resample_wave(samples_of(sound), sound.sample_rate, frontend.sample_rate);
  }
  // Silence up to the clip's end, and so much that a spectrogram can be made.
  const auto& config = models.audio_encoder->config();
  const std::int64_t needed =
      std::max(config.mel_frames(settings.audio.length) * frontend.hop, frontend.window);
  if (wave.size(1) < needed) wave = at::constant_pad_nd(wave, {0, needed - wave.size(1)});
  const at::Tensor mel = ltx2::log_mel(wave, frontend).unsqueeze(0);
  wave = at::Tensor();
  const std::vector<const weights::ParameterGroup*> order = {&models.audio_encoder->encoder_group(),
                                                             &models.audio_decoder->statistics_group()};
  auto source = backends.source(models.table(ComponentKind::audio_vae), order);
  const at::Tensor latents = models.audio_encoder->encode(*source, mel, settings.dtype);
  sampling::check_finite(latents, fmt::format("the latents of {}", file.string()));
  const auto lease = source->acquire(models.audio_decoder->statistics_group());
  const at::Tensor packed =
      ltx2::normalize_packed(models.audio_decoder->statistics(), sampling::pack_audio(latents));
  kernels::release_scratch();
  return packed.narrow(1, 0, settings.audio.length).contiguous();
}

void check_media(const Request& request, const ConditionPlan& plan) {
  for (const PlannedFrames& frames : plan.frames) {
    if (frames.source == FrameSource::image) {
      media::read_picture(frames.file);
      continue;
    }
    media::VideoReader reader(frames.file, request.fps, frames.first);
    for (std::int64_t index = 0; index < frames.count; ++index) next_frame(reader, frames, index);
  }
  if (plan.encodes_sound()) media::read_sound(sound_file(request), clip_seconds(request) + kBeyond);
  give_back_freed_memory();
}

namespace {

// What reading takes, measured with pictures and videos of 640 x 400 to 3840 x 2160: a picture as it is read
// and as it comes back from its round trip; the frames that a video's decoder refers to, and one as it is
// handed on.
Bytes picture_memory(const media::PictureInfo& picture, int crf) {
  const Bytes area = static_cast<Bytes>(picture.width) * static_cast<Bytes>(picture.height);
  return crf == 0 ? 9 * area : 18 * area + MiB(3);
}

Bytes video_memory(const media::ReadableVideo& video) {
  return 18 * static_cast<Bytes>(video.width) * static_cast<Bytes>(video.height) + MiB(3);
}

}  // namespace

Bytes frames_encode_memory(const ModelSet& models, const Request& request, const Settings& settings,
                           const StageSettings& stage, const GivenMedia& media) {
  const auto compression = models.compression();
  std::size_t image = 0, video = 0, reference = 0;
  Bytes most = 0, latents = 0;
  for (const PlannedFrames& frames : settings.conditions.frames) {
    const media::FitSize size = pixels_of(frames, stage, compression);
    const auto pixels = static_cast<Bytes>(size.width) * static_cast<Bytes>(size.height);
    const auto piece = static_cast<Bytes>(std::min(frames.count, ltx2::EncodePiece{}.frames));
    const Bytes encoding = ltx2::encode_memory(
        models.video_encoder->config(), {.height = size.height, .width = size.width, .frames = frames.count},
        settings.dtype);
    const Bytes planes = 3 * sizeof(float) * piece * pixels;
    if (frames.source == FrameSource::image) {
      const media::PictureInfo& info = media.images[image++];
      most = std::max({most, picture_memory(info, image_crf(request)) + planes, encoding + planes});
    } else {
      const media::ReadableVideo& info =
          frames.source == FrameSource::video ? media.videos[video++] : media.references[reference++];
      most = std::max(most, encoding + video_memory(info) + planes);
    }
    const auto shape = latents_of(frames, stage.video, compression);
    latents += static_cast<Bytes>(shape.tokens() * shape.channels) * sizeof(float);
  }
  return most + 2 * latents;
}

Bytes sound_encode_memory(const ModelSet& models, const Request& request, const Settings& settings,
                          const GivenMedia& media) {
  const media::SoundInfo& sound = media.sound ? *media.sound : *media.retaken;
  const ltx2::MelFrontend frontend = ltx2::mel_frontend_of(models.audio_encoder->config());
  const auto samples = std::min(
      sound.samples, static_cast<std::int64_t>((clip_seconds(request) + kBeyond) * sound.sample_rate));
  const Bytes mel = ltx2::mel_memory(frontend, 2, samples, sound.sample_rate);
  const Bytes wave = static_cast<Bytes>(samples) * 2 * sizeof(float) * 2;  // as read, and together
  const std::int64_t frames = models.audio_encoder->config().mel_frames(settings.audio.length) + 1;
  return std::max(mel + wave,
                  ltx2::sound_encode_memory(models.audio_encoder->config(), frames, settings.dtype));
}

}  // namespace sluice::pipeline
