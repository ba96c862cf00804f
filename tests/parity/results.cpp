#include "parity/results.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace sluice::parity {
namespace {

Row compare(const std::string& output, const at::Tensor& got, const at::Tensor& want,
            test::Tolerance tolerance) {
  Row row{.output = output, .tolerance = tolerance};
  const testing::AssertionResult verdict = test::all_close(got, want, tolerance);
  row.pass = static_cast<bool>(verdict);
  if (!row.pass) row.remark = verdict.message();
  if (got.sizes() == want.sizes() && want.numel() > 0) {
    row.max_abs = (got.to(at::kDouble) - want.to(at::kDouble)).abs().max().item<double>();
    const auto largest = want.to(at::kDouble).abs().max().item<double>();
    row.max_rel = row.max_abs == 0.0 ? 0.0 : row.max_abs / largest;
  }
  return row;
}

}  // namespace

std::vector<Row> judge(const Case& parity_case, const Results& results) {
  std::vector<Row> rows;
  for (const auto& [name, entry] : parity_case.manifest().outputs) {
    auto got = results.tensors().find(name);
    if (got == results.tensors().end() || !got->second.defined()) {
      rows.push_back({.output = name, .tolerance = entry.tolerance, .remark = "was not computed"});
    } else {
      rows.push_back(compare(name, got->second, parity_case.wanted(name), entry.tolerance));
    }
  }
  for (const Results::Claim& claim : results.claims())
    rows.push_back({.output = claim.what,
                    .is_tensor = false,
                    .pass = claim.holds,
                    .remark = claim.holds ? std::string() : claim.otherwise});
  if (rows.empty()) rows.push_back({.output = "-", .is_tensor = false, .remark = "nothing was compared"});
  return rows;
}

}  // namespace sluice::parity
