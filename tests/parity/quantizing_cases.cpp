#include "parity/quantizing_cases.h"

#include "bytes/format/writer.h"
#include "support/temporary_folder.h"
#include "weights/quantize/encode.h"

#include <sluice/error.h>
#include <sluice/quantize.h>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <limits>

namespace sluice::parity {
namespace {

const std::string kMatrix = "model.diffusion_model.transformer_blocks.0.attn1.to_q.weight";

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<std::byte> bytes_of(at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// "no_scale" casts: its scale is given.
float scale_of(const Case& parity_case, std::span<const std::byte> weight) {
  if (parity_case.has_param("scale")) return parity_case.param<float>("scale");
  return weights::f8_e4m3_scale(weights::largest_magnitude(Dtype::F32, weight));
}

at::Tensor f8_codes(const at::Tensor& values, float scale) {
  at::Tensor codes = at::empty(values.sizes(), at::kByte);
  weights::encode_f8_e4m3(Dtype::F32, bytes_of(values), scale, bytes_of(codes));
  return codes;
}

void add_nf4(const at::Tensor& weight, Results& results) {
  const auto block = static_cast<std::int64_t>(kNf4BlockValues);
  at::Tensor packed = at::empty({(weight.numel() + 1) / 2}, at::kByte);
  at::Tensor absmax = at::empty({(weight.numel() + block - 1) / block}, at::kFloat);
  weights::encode_nf4(Dtype::F32, bytes_of(weight),
                      {absmax.mutable_data_ptr<float>(), static_cast<std::size_t>(absmax.numel())},
                      bytes_of(packed));
  results.add("packed", packed);
  results.add("absmax", absmax);
}

QuantizeFormat format_of(const Case& parity_case) {
  return parity_case.manifest().component == "quant_fp8" ? QuantizeFormat::fp8 : QuantizeFormat::nf4;
}

void write_matrix(const std::filesystem::path& path, Dtype dtype, const at::Tensor& values) {
  bytes::write_safetensors(
      path, std::vector<bytes::TensorData>{{{kMatrix, dtype, values.sizes().vec()}, bytes_of(values)}});
}

void claim_refused(Results& results, const std::string& what, QuantizeFormat format,
                   const std::filesystem::path& source, const std::vector<std::string>& named) {
  try {
    quantize({.input = source, .output = source.parent_path() / "out", .format = format});
    results.claim(what, false, "was quantized");
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const std::string& name : named)
      results.claim(what, message.find(name) != std::string::npos, message);
  }
}

}  // namespace

void add_codes(const Case& parity_case, Results& results) {
  const auto& outputs = parity_case.manifest().outputs;
  if (outputs.contains("probe_code")) results.add("probe_code", f8_codes(parity_case.input("probe"), 1));
  if (outputs.contains("packed")) add_nf4(parity_case.input("weight"), results);
  if (!outputs.contains("codes")) return;
  const at::Tensor& weight = parity_case.input("weight");
  const float scale = scale_of(parity_case, bytes_of(weight));
  results.add("codes", f8_codes(weight, scale));
  if (outputs.contains("scale")) results.add("scale", at::scalar_tensor(scale, at::kFloat));
}

void claim_quantizing_refusals(const Case& parity_case, Results& results) {
  const test::TemporaryFolder folder;
  const QuantizeFormat format = format_of(parity_case);
  const std::filesystem::path file = folder / "damaged.safetensors";
  constexpr std::int64_t kPlace = 37;
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    at::Tensor weight = at::ones({8, 16}, at::kFloat);
    weight.view(-1)[kPlace] = bad;
    write_matrix(file, Dtype::F32, weight);
    claim_refused(results, fmt::format("refuses to quantize {}", bad), format, file,
                  {kMatrix, fmt::format("element {}", kPlace)});
    std::filesystem::remove_all(folder / "out.partial");
  }
  write_matrix(file, Dtype::F8_E4M3, at::zeros({8, 16}, at::kByte));
  claim_refused(results, "refuses what is fp8", format, file, {"already quantized", kMatrix});
  write_matrix(file, Dtype::U8, at::zeros({64, 1}, at::kByte));
  claim_refused(results, "refuses what is nf4", format, file, {"already quantized", kMatrix});
}

}  // namespace sluice::parity
