#include "compute/adapters.h"

#include "bytes/format/writer.h"

#include <sluice/checkpoint.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <span>

namespace sluice::test {
namespace {

constexpr const char* kModelPrefix = "model.diffusion_model.";
constexpr const char* kEnding = ".weight";

bool has_pair(const std::string& matrix) {
  for (const char* kind : {".attn1.to_q", ".attn2.to_v", ".audio_attn1.to_k", ".audio_to_video_attn.to_out.0",
                           ".video_to_audio_attn.to_q", ".ff.net.0.proj", ".ff.net.2", ".audio_ff.net.2"}) {
    if (matrix.ends_with(kind)) return true;
  }
  return false;
}

// "transformer_blocks.0.attn1.to_q" of a block's matrix in the demo model; else empty.
std::string matrix_of(const TensorInfo& tensor) {
  const std::string_view name = tensor.name;
  if (tensor.shape.size() != 2 || !name.starts_with(std::string(kModelPrefix) + "transformer_blocks.") ||
      !name.ends_with(kEnding))
    return {};
  std::string matrix(name.substr(std::strlen(kModelPrefix)));
  matrix.resize(matrix.size() - std::strlen(kEnding));
  return matrix;
}

std::vector<std::byte> bytes_of(const Checkpoint& checkpoint, const TensorInfo& tensor) {
  std::vector<std::byte> bytes(tensor.size);
  checkpoint.read(tensor, bytes);
  return bytes;
}

// bf16 values are the upper halves of f32 ones.
Values widened(std::span<const std::byte> bf16) {
  Values values(bf16.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bf16.data() + 2 * i, sizeof half);
    const std::uint32_t whole = std::uint32_t{half} << 16;
    std::memcpy(&values[i], &whole, sizeof whole);
  }
  return values;
}

void merge(Values& matrix, const AdapterPair& pair, double strength) {
  const auto in = static_cast<std::size_t>(pair.in), out = static_cast<std::size_t>(pair.out);
  constexpr std::size_t kRank = kAdapterRank;
  for (std::size_t row = 0; row < out; ++row) {
    for (std::size_t column = 0; column < in; ++column) {
      double sum = 0;
      for (std::size_t r = 0; r < kRank; ++r)
        sum += double{pair.up[row * kRank + r]} * pair.down[r * in + column];
      float& value = matrix[row * in + column];
      value = static_cast<float>(value + strength * sum);
    }
  }
}

std::span<const std::byte> as_bytes(const Values& values) {
  return std::as_bytes(std::span(values));
}

}  // namespace

std::vector<AdapterPair> small_adapter() {
  std::mt19937 random(1);
  auto values = [&](std::int64_t count) {
    constexpr float kLargest = 0.08F;
    Values made(static_cast<std::size_t>(count));
    for (float& value : made) value = kLargest * (static_cast<float>(random() % 2001) / 1000 - 1);
    return made;
  };
  std::vector<AdapterPair> pairs;
  const Checkpoint model = Checkpoint::open(demo_model());
  for (const TensorInfo& tensor : model.tensors()) {
    const std::string matrix = matrix_of(tensor);
    if (!has_pair(matrix)) continue;
    const std::int64_t out = tensor.shape[0], in = tensor.shape[1];
    Values down = values(kAdapterRank * in);
    pairs.push_back({matrix, in, out, std::move(down), values(out * kAdapterRank)});
  }
  return pairs;
}

void write_adapter(const fs::path& file, const std::vector<AdapterPair>& pairs, const AdapterNames& names) {
  std::vector<bytes::TensorData> tensors;
  for (const AdapterPair& pair : pairs) {
    const std::string layer = names.prefix + pair.matrix;
    tensors.push_back({{layer + ".lora_A.weight", Dtype::F32, {kAdapterRank, pair.in}}, as_bytes(pair.down)});
    tensors.push_back({{layer + ".lora_B.weight", Dtype::F32, {pair.out, kAdapterRank}}, as_bytes(pair.up)});
  }
  bytes::write_safetensors(file, tensors, names.metadata);
}

void write_merged_model(const fs::path& file, const std::vector<AdapterPair>& pairs, double strength) {
  const Checkpoint model = Checkpoint::open(demo_model());
  std::vector<std::vector<std::byte>> contents;
  std::vector<Values> merged;
  std::vector<bytes::TensorData> tensors;
  contents.reserve(model.tensors().size());
  merged.reserve(pairs.size());
  for (const TensorInfo& tensor : model.tensors()) {
    const auto& content = contents.emplace_back(bytes_of(model, tensor));
    const auto pair = std::ranges::find(pairs, matrix_of(tensor), &AdapterPair::matrix);
    if (pair == pairs.end()) {
      tensors.push_back({{tensor.name, tensor.dtype, tensor.shape}, content});
      continue;
    }
    Values& matrix = merged.emplace_back(widened(content));
    merge(matrix, *pair, strength);
    tensors.push_back({{tensor.name, Dtype::F32, tensor.shape}, as_bytes(matrix)});
  }
  bytes::write_safetensors(file, tensors, model.shards().front().metadata);
}

}  // namespace sluice::test
