// quant_fp8, quant_nf4: what is quantized is read, widened and multiplied with; the other half quantizes
// (quantizing_cases.h).
#include "kernels/linear.h"
#include "kernels/widen.h"
#include "nn/layers.h"
#include "parity/quantizing_cases.h"
#include "parity/registry.h"
#include "weights/quantized.h"

#include <sluice/checkpoint.h>

#include <ATen/ATen.h>

namespace sluice::parity {
namespace {

using kernels::Matrix;

at::Tensor widened(const Matrix& matrix, at::ScalarType dtype) {
  at::Tensor values = at::empty({matrix.rows, matrix.columns}, dtype);
  kernels::widen_rows(matrix, 0, matrix.rows, values);
  return values;
}

// Both dtypes that are computed with, and the product where the case asks for it.
void add_widened(const Case& parity_case, const Matrix& matrix, const at::Tensor& bias, Results& results) {
  const auto& outputs = parity_case.manifest().outputs;
  const auto shape = parity_case.wanted("dequantized").sizes();
  results.add("dequantized", widened(matrix, at::kFloat).view(shape));
  if (outputs.contains("dequantized_bf16_bits"))
    results.add("dequantized_bf16_bits", widened(matrix, at::kBFloat16).view(at::kShort).view(shape));
  if (outputs.contains("linear"))
    results.add("linear", kernels::linear(parity_case.input("x"), matrix, bias));
}

// The file as the program opens it.
void add_from_file(const Case& parity_case, Results& results) {
  weights::ComponentTable table = weights::whole_checkpoint("layer", Checkpoint::open(parity_case.weights()));
  weights::gather_quantized(table);
  weights::check_quantized(table);
  const at::Tensor& weight = parity_case.input("weight");
  weights::ParameterGroup group{.name = "layer"};
  nn::Linear layer;
  nn::declare(weights::ParameterScope(group) / "layer", layer, {.in = weight.size(1), .out = weight.size(0)});
  const weights::ParameterGroup* groups[] = {&group};
  weights::account(table, groups);
  const auto source =
      weights::make_weight_source(table, std::make_shared<bytes::MappedCheckpoint>(table.checkpoint));
  const auto lease = source->acquire(group);
  add_widened(parity_case, nn::matrix(layer), layer.bias, results);
}

// A matrix from codes and scales; one of fewer than two axes is a row.
Matrix matrix_of(const Case& parity_case, const at::Tensor& codes, const at::Tensor& scales) {
  const at::Tensor& weight = parity_case.input("weight");
  const std::int64_t columns = weight.size(-1);
  return {codes, scales, weight.numel() / columns, columns};
}

Results run_fp8(const Case& parity_case) {
  Results results;
  add_codes(parity_case, results);
  if (!parity_case.manifest().weights.empty()) {
    add_from_file(parity_case, results);
  } else {
    const Matrix matrix = matrix_of(parity_case, parity_case.wanted("codes").view(at::kFloat8_e4m3fn),
                                    parity_case.wanted("scale"));
    add_widened(parity_case, matrix, {}, results);
  }
  return results;
}

Results run_nf4(const Case& parity_case) {
  Results results;
  add_codes(parity_case, results);
  const Matrix matrix = matrix_of(parity_case, parity_case.wanted("packed"), parity_case.wanted("absmax"));
  add_widened(parity_case, matrix, {}, results);
  return results;
}

// All codes; the file has 0 where they are NaN.
Results run_fp8_table(const Case& parity_case) {
  Results results;
  add_codes(parity_case, results);
  const at::Tensor codes = parity_case.input("code").view(at::kFloat8_e4m3fn);
  const at::Tensor values = widened(Matrix(codes, {}, 1, codes.numel()), at::kFloat).squeeze(0);
  results.add("value", at::nan_to_num(values, 0.0));
  results.add("is_nan", at::isnan(values).to(at::kByte));
  return results;
}

Results run_refusals(const Case& parity_case) {
  Results results;
  claim_quantizing_refusals(parity_case, results);
  return results;
}

}  // namespace

void add_quantized(Registry& registry) {
  registry.add("quant_fp8", "", run_fp8);
  registry.add("quant_fp8", "table", run_fp8_table);
  registry.add("quant_nf4", "", run_nf4);
  for (const char* component : {"quant_fp8", "quant_nf4"}) registry.add(component, "refusals", run_refusals);
}

}  // namespace sluice::parity
