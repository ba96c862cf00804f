#include "synth/encoder_halves.h"

#include "nn/config_reader.h"

#include <utility>

namespace sluice::synth {
namespace {

using nlohmann::json;
using nn::ConfigReader;
using Numbers = std::vector<std::int64_t>;

// Collects the weight and bias of convolutions under a prefix.
class ConvList {
 public:
  explicit ConvList(Numbers kernel) : kernel_(std::move(kernel)) {}

  void conv(const std::string& name, std::int64_t in, std::int64_t out) { conv(name, in, out, kernel_); }
  void conv(const std::string& name, std::int64_t in, std::int64_t out, const Numbers& kernel) {
    Numbers shape = {out, in};
    shape.insert(shape.end(), kernel.begin(), kernel.end());
    tensors_.push_back({name + ".conv.weight", std::move(shape)});
    tensors_.push_back({name + ".conv.bias", {out}});
  }
  void residual(const std::string& name, std::int64_t in, std::int64_t out) {
    conv(name + ".conv1", in, out);
    conv(name + ".conv2", out, out);
  }
  std::vector<NamedShape> take() { return std::move(tensors_); }

 private:
  Numbers kernel_;
  std::vector<NamedShape> tensors_;
};

// Positions of a frame that one position becomes.
std::int64_t shuffle(const std::string& type) {
  return type == "spatial" ? 4 : type == "temporal" ? 2 : 8;
}

}  // namespace

std::vector<NamedShape> video_encoder(const json& config, std::int64_t base_channels) {
  ConfigReader read(config, "vae");
  const auto channels = read.required<Numbers>("block_out_channels");
  const auto layers = read.required<Numbers>("layers_per_block");
  const auto types = read.required<std::vector<std::string>>("downsample_type");
  const std::int64_t patch = read.count("patch_size"), latent = read.count("latent_channels");
  std::int64_t width = base_channels;

  ConvList list({3, 3, 3});
  list.conv("encoder.conv_in", read.count("in_channels") * patch * patch, width);
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const std::string block = fmt::format("encoder.down_blocks.{}", i);
    for (std::int64_t j = 0; j < layers[i]; ++j)
      list.residual(fmt::format("{}.resnets.{}", block, j), width, width);
    list.conv(block + ".downsamplers.0.conv", width, channels[i] / shuffle(types[i]));
    width = channels[i];
  }
  for (std::int64_t j = 0; j < layers.back(); ++j)
    list.residual(fmt::format("encoder.mid_block.resnets.{}", j), width, width);
  list.conv("encoder.conv_out", width, latent + 1);  // the last channel is the shared log variance
  return list.take();
}

std::vector<NamedShape> audio_encoder(const json& config) {
  ConfigReader read(config, "audio_vae");
  const auto multipliers = read.required<Numbers>("ch_mult");
  const std::int64_t base = read.count("base_channels"), latent = read.count("latent_channels");

  ConvList list({3, 3});
  list.conv("encoder.conv_in", read.count("in_channels"), base);
  std::int64_t width = base;
  for (std::size_t level = 0; level < multipliers.size(); ++level) {
    const std::int64_t out = base * multipliers[level];
    for (std::int64_t j = 0; j < read.count("num_res_blocks"); ++j) {
      const std::string block = fmt::format("encoder.down.{}.block.{}", level, j);
      list.residual(block, width, out);
      if (width != out) list.conv(block + ".nin_shortcut", width, out, {1, 1});
      width = out;
    }
    if (level + 1 < multipliers.size())
      list.conv(fmt::format("encoder.down.{}.downsample", level), width, width);
  }
  for (const char* block : {"encoder.mid.block_1", "encoder.mid.block_2"}) list.residual(block, width, width);
  list.conv("encoder.conv_out", width, read.required<bool>("double_z") ? 2 * latent : latent);
  return list.take();
}

}  // namespace sluice::synth
