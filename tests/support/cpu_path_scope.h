#pragma once
// For a scope, kernels take one of the paths that this processor can run.

#include "base/cpu_path.h"

namespace sluice::testing {

class CpuPathScope {
 public:
  explicit CpuPathScope(CpuPath path) : before_(cpu_path()) { set_cpu_path(path); }
  ~CpuPathScope() { set_cpu_path(before_); }
  CpuPathScope(const CpuPathScope&) = delete;
  CpuPathScope& operator=(const CpuPathScope&) = delete;

 private:
  CpuPath before_;
};

}  // namespace sluice::testing
