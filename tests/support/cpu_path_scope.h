#pragma once
// For a scope, kernels take one of the paths that this processor can run.

#include "kernels/instructions.h"

namespace sluice::testing {

class CpuPathScope {
 public:
  explicit CpuPathScope(CpuPath path) : before_(cpu_path()) { kernels::use_cpu_path(path); }
  ~CpuPathScope() { kernels::use_cpu_path(before_); }
  CpuPathScope(const CpuPathScope&) = delete;
  CpuPathScope& operator=(const CpuPathScope&) = delete;

 private:
  CpuPath before_;
};

}  // namespace sluice::testing
