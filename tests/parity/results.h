#pragma once
// What a runner computed for a case, and the verdict on it: one row for each output of the manifest, and one
// for each claim that is no tensor (a file refused, a name mapped).

#include "parity/case.h"

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

namespace sluice::parity {

class Results {
 public:
  void add(const std::string& output, const at::Tensor& got) { tensors_.insert_or_assign(output, got); }
  // Something that must hold; `otherwise` is shown when it does not.
  void claim(const std::string& what, bool holds, const std::string& otherwise = {}) {
    claims_.push_back({what, holds, otherwise});
  }

  struct Claim {
    std::string what;
    bool holds;
    std::string otherwise;
  };

  const std::map<std::string, at::Tensor>& tensors() const { return tensors_; }
  const std::vector<Claim>& claims() const { return claims_; }

 private:
  std::map<std::string, at::Tensor> tensors_;
  std::vector<Claim> claims_;
};

struct Row {
  std::string output;
  double max_abs = 0.0;  // max |got - want|
  double max_rel = 0.0;  // the same over max |want|
  test::Tolerance tolerance;
  bool is_tensor = true;  // else the numbers mean nothing
  bool pass = false;
  std::string remark;  // why it failed
};

// Every output of the manifest must be there and within its tolerance, element by element; every claim must
// hold.
std::vector<Row> judge(const Case& parity_case, const Results& results);

}  // namespace sluice::parity
