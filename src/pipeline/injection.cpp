#include "pipeline/injection.h"

#include "sampling/finite.h"
#include "weights/tensor_file.h"

#include <sluice/checkpoint.h>
#include <sluice/error.h>

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace sluice::pipeline {
namespace {

using Tensors = weights::TensorMap;

constexpr std::array<std::string_view, 6> kNames = {"video_noise",
                                                    "audio_noise",
                                                    "prompt_embeds",
                                                    "prompt_attention_mask",
                                                    "negative_prompt_embeds",
                                                    "negative_prompt_attention_mask"};

struct Expected {
  std::vector<std::int64_t> packed;
  std::vector<std::int64_t> unpacked;
};

Tensors take(const std::filesystem::path& path, Values values) {
  Tensors tensors;
  if (values == Values::read) {
    tensors = weights::read_tensors(path);
    for (const auto& [name, tensor] : tensors)
      sampling::check_finite(tensor.to(at::kFloat), fmt::format("{}: '{}'", path.string(), name));
    return tensors;
  }
  const Checkpoint checkpoint = Checkpoint::open(path);
  for (const TensorInfo& info : checkpoint.tensors())
    tensors.emplace(info.name, at::zeros({}, at::TensorOptions().dtype(at::kFloat)).expand(info.shape));
  return tensors;
}

at::Tensor noise(const Tensors& tensors, const std::string& name, const Expected& expected,
                 const std::string& where, at::Tensor (*pack)(const at::Tensor&)) {
  auto found = tensors.find(name);
  if (found == tensors.end()) return {};
  at::Tensor value = found->second.to(at::kFloat);
  if (value.sizes() == at::IntArrayRef(expected.unpacked)) return pack(value);
  if (value.sizes() == at::IntArrayRef(expected.packed)) return value;
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: '{}' is {}, the request needs {} or {}", where, name,
                          format_shape(value.sizes().vec()), format_shape(expected.unpacked),
                          format_shape(expected.packed)),
              "give noise for this width, height, frame count and rate");
}

std::optional<InjectedPrompt> prompt(const Tensors& tensors, const std::string& prefix,
                                     const std::string& where) {
  auto embeds = tensors.find(prefix + "prompt_embeds");
  auto mask = tensors.find(prefix + "prompt_attention_mask");
  if (embeds == tensors.end()) {
    if (mask == tensors.end()) return std::nullopt;
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' without '{}'", where, mask->first, prefix + "prompt_embeds"),
                "give both");
  }
  if (embeds->second.dim() != 3 || embeds->second.size(0) != 1) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' is {}, not [1, tokens, channels]", where, embeds->first,
                            format_shape(embeds->second.sizes().vec())),
                "give the text encoder's states, flattened, for one prompt");
  }
  InjectedPrompt prompt{.embeds = embeds->second.to(at::kFloat)};
  const std::int64_t tokens = prompt.embeds.size(1);
  prompt.mask = mask == tensors.end() ? at::ones({1, tokens}, at::kLong) : mask->second.to(at::kLong);
  if (prompt.mask.sizes() != at::IntArrayRef({1, tokens})) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: '{}' is {}, not [1, {}]", where, mask->first,
                            format_shape(prompt.mask.sizes().vec()), tokens),
                "give one value a token");
  }
  return prompt;
}

void refuse_unknown(const Tensors& tensors, const std::string& where) {
  for (const auto& [name, tensor] : tensors) {
    if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) continue;
    throw Error(ErrorKind::bad_input, fmt::format("{}: '{}' cannot be injected", where, name),
                fmt::format("known names are {}", fmt::join(kNames, ", ")));
  }
}

}  // namespace

Injection read_injection(const std::filesystem::path& path, const Settings& settings, Values values) {
  if (path.empty()) return {};
  const Tensors tensors = take(path, values);
  const std::string where = path.string();
  refuse_unknown(tensors, where);
  const auto& v = settings.video;
  const auto& a = settings.audio;
  return {
      .video_noise = noise(tensors, "video_noise",
                           {{1, v.tokens(), v.channels}, {1, v.channels, v.frames, v.height, v.width}}, where,
                           sampling::pack_video),
      .audio_noise = noise(tensors, "audio_noise",
                           {{1, a.length, a.channels * a.mel_bins}, {1, a.channels, a.length, a.mel_bins}},
                           where, sampling::pack_audio),
      .positive = prompt(tensors, "", where),
      .negative = prompt(tensors, "negative_", where)};
}

}  // namespace sluice::pipeline
