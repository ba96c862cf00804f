#include "synth/fill.h"

#include "synth/filters.h"

#include <sluice/error.h>

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

namespace sluice::synth {
namespace {

constexpr float kSmall = 0.02F;  // of biases, tables and norms around their mean

// Sum of four uniform bytes: mean 510, variance 4 (256² - 1) / 12.
constexpr float kByteSumMean = 510.0F;
constexpr float kByteSumStd = 147.7977F;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// What one output of a matrix or convolution [out, in, taps…] sums over.
double fan_in(const NamedShape& tensor) {
  return std::accumulate(tensor.shape.begin() + 1, tensor.shape.end(), 1.0, std::multiplies<>());
}

// The vocoder's generators have no norms: full-size residual steps, three a stage, would grow 2^9 times, and
// the wave would be nothing but clipped.
double gain(std::string_view name) {
  if (contains(name, "resnets.") && contains(name, "convs2.")) return 0.25;
  if (name == "vocoder.conv_out.weight" || name == "bwe_generator.conv_out.weight") return 0.05;
  return 1;
}

Noise matrix_noise(const NamedShape& tensor) {
  const std::string_view name = tensor.name;
  if (contains(name, "learnable_registers")) return {0, 1};
  if (contains(name, "scale_shift_table") || contains(name, "keyframes")) return {0, kSmall};
  double inputs = fan_in(tensor);
  if (contains(name, "upsamplers.") && tensor.shape.size() == 3) {
    // Transposed [in, out, taps]: the stride is about half the taps, so two of them meet at each output.
    inputs = 2.0 * static_cast<double>(tensor.shape[0]);
  }
  return {0, static_cast<float>(gain(name) / std::sqrt(inputs))};
}

Noise vector_noise(std::string_view name) {
  if (name == "latents_mean") return {0, 0.1F};
  if (name == "latents_std") return {1, 0.05F};
  // The norms of Gemma hold weights minus one; alpha and beta of a snake are logarithms.
  const bool minus_one = contains(name, "layernorm") || name.ends_with("self_attn.q_norm.weight") ||
                         name.ends_with("self_attn.k_norm.weight") || name == "norm.weight";
  if (!minus_one && contains(name, "norm") && name.ends_with(".weight")) return {1, kSmall};
  return {0, kSmall};
}

// Filters and bases, which noise would make meaningless.
Table special_table(const NamedShape& tensor) {
  const std::string_view name = tensor.name;
  if (name.ends_with(".filter")) return low_pass_filter(tensor.shape.back());
  if (name.ends_with("stft_fn.forward_basis") || name.ends_with("stft_fn.inverse_basis"))
    return fourier_basis(tensor.shape.back());
  if (name.ends_with("mel_basis")) return mel_basis(tensor.shape[0], tensor.shape[1]);
  return {};
}

// splitmix64's finalizer: counter in, 64 well mixed bits out.
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

float byte_sum(std::uint32_t bits) {
  return static_cast<float>((bits & 0xff) + ((bits >> 8) & 0xff) + ((bits >> 16) & 0xff) + (bits >> 24));
}

struct ToBf16 {  // round to nearest even; values are finite
  std::uint16_t operator()(float value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};
struct ToF32 {
  float operator()(float value) const { return value; }
};

template <typename T, typename Convert>
void generate_noise(const Noise& noise, std::uint64_t key, std::int64_t first, std::span<T> to,
                    Convert convert) {
  const float scale = noise.std / kByteSumStd;
  const float offset = noise.mean - kByteSumMean * scale;
  auto value = [&](std::uint64_t bits) {
    return convert(byte_sum(static_cast<std::uint32_t>(bits)) * scale + offset);
  };
  const std::uint64_t counter = key + static_cast<std::uint64_t>(first / 2) * 0x9e3779b97f4a7c15ULL;
  const std::size_t pairs = to.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i) {
    const std::uint64_t bits = mix(counter + i * 0x9e3779b97f4a7c15ULL);
    to[2 * i] = value(bits);
    to[2 * i + 1] = value(bits >> 32);
  }
  if (to.size() % 2) to.back() = value(mix(counter + pairs * 0x9e3779b97f4a7c15ULL));
}

template <typename T, typename Convert>
void generate_as(const Fill& fill, std::int64_t first, std::span<std::byte> to, Convert convert) {
  const std::span<T> values(reinterpret_cast<T*>(to.data()), to.size() / sizeof(T));
  if (const auto* noise = std::get_if<Noise>(&fill.values))
    return generate_noise(*noise, fill.key, first, values, convert);
  const Table& table = std::get<Table>(fill.values);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = convert(table[static_cast<std::size_t>(first) + i]);
}

}  // namespace

Fill choose_fill(std::string_view component, const NamedShape& tensor, std::uint64_t seed) {
  const std::uint64_t component_seed = XXH3_64bits_withSeed(component.data(), component.size(), seed);
  Fill fill{XXH3_64bits_withSeed(tensor.name.data(), tensor.name.size(), component_seed), Noise{}};
  if (Table table = special_table(tensor); !table.empty()) {
    fill.values = std::move(table);
  } else if (tensor.shape.size() >= 2) {
    fill.values = matrix_noise(tensor);
  } else {
    fill.values = vector_noise(tensor.name);
  }
  return fill;
}

void generate(const Fill& fill, Dtype dtype, std::int64_t first, std::span<std::byte> to) {
  if (dtype == Dtype::BF16) return generate_as<std::uint16_t>(fill, first, to, ToBf16());
  if (dtype == Dtype::F32) return generate_as<float>(fill, first, to, ToF32());
  throw Error(ErrorKind::usage, fmt::format("values in {} cannot be made", dtype_name(dtype)),
              "use BF16 or F32");
}

}  // namespace sluice::synth
