#pragma once
// All components of a checkpoint as models, accounted for on both sides and checked to belong together; no
// weight is read.

#include "models/ltx2/audio_vae/encoder.h"
#include "models/ltx2/connectors/connectors.h"
#include "models/ltx2/files/model_files.h"
#include "models/ltx2/text/gemma.h"
#include "models/ltx2/transformer/transformer.h"
#include "models/ltx2/video_vae/encoder.h"
#include "models/ltx2/vocoder/vocoder.h"
#include "sampling/latents.h"

#include <filesystem>
#include <map>
#include <memory>
#include <string>

namespace sluice::pipeline {

// What a run does with a checkpoint beside denoising and decoding frames.
struct ModelNeeds {
  bool sound = true;          // is decoded
  bool given_frames = false;  // are encoded
  bool given_sound = false;
  ltx2::Modalities modalities = ltx2::Modalities::both;
};

struct ModelSet {
  ltx2::ModelFiles files;
  std::unique_ptr<ltx2::Transformer> transformer;
  std::unique_ptr<ltx2::Connectors> connectors;
  std::unique_ptr<ltx2::VideoDecoder> video_decoder;
  std::unique_ptr<ltx2::AudioDecoder> audio_decoder;
  std::unique_ptr<ltx2::Vocoder> vocoder;             // nullptr without sound
  std::unique_ptr<ltx2::VideoEncoder> video_encoder;  // nullptr where no frames are given
  std::unique_ptr<ltx2::AudioEncoder> audio_encoder;  // nullptr where no sound is given
  std::map<ltx2::ComponentKind, weights::Accounting> accounting;

  const weights::ComponentTable& table(ltx2::ComponentKind kind) const { return files.component(kind).table; }
  sampling::VideoCompression compression() const;
  sampling::AudioRate audio_rate() const;
};

// Error(mismatch) for components whose widths do not meet, naming both; Errors of ModelFiles::open and
// account().
ModelSet open_models(const std::filesystem::path& path, const ModelNeeds& needs);

struct TextEncoder {
  std::filesystem::path folder;
  std::filesystem::path tokenizer;  // tokenizer.json
  weights::ComponentTable table;
  std::unique_ptr<ltx2::GemmaEncoder> model;
  weights::Accounting accounting;
  std::vector<std::string> warnings;
};

// `folder` holds config.json, weights and tokenizer.json (or ../tokenizer/tokenizer.json, as diffusers has
// it). Error(bad_input) naming what is missing.
TextEncoder open_text_encoder(const std::filesystem::path& folder);

// The folder a request means: its own, else the diffusers folder's text_encoder.  Error(usage) if there is
// neither.
std::filesystem::path text_encoder_folder(const std::filesystem::path& asked,
                                          const std::filesystem::path& model);

}  // namespace sluice::pipeline
