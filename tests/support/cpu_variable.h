#pragma once
// For a scope, SLUICE_CPU of this process and its children.

#include <cstdlib>
#include <string>
#include <string_view>

namespace sluice::test {

class CpuVariable {
 public:
  explicit CpuVariable(std::string_view value) { setenv("SLUICE_CPU", std::string(value).c_str(), 1); }
  ~CpuVariable() { unsetenv("SLUICE_CPU"); }
  CpuVariable(const CpuVariable&) = delete;
  CpuVariable& operator=(const CpuVariable&) = delete;
};

}  // namespace sluice::test
