#include "kernels/instructions.h"

#include <hwy/targets.h>

#include <cstdint>
#include <cstdlib>

namespace sluice::kernels {
namespace {

// Highway's targets that a path leaves out.
std::int64_t disabled_targets(CpuPath path) {
#if defined(__x86_64__)
  switch (path) {
    case CpuPath::scalar:
      return HWY_SSSE3 | HWY_SSE4 | HWY_AVX2 | HWY_AVX3 | HWY_AVX3_DL;
    case CpuPath::avx2:
      return HWY_AVX3 | HWY_AVX3_DL;
    case CpuPath::avx512:
      return HWY_AVX3_DL;
    case CpuPath::avx512_bf16:
    case CpuPath::amx:
      return 0;
  }
#endif
  return 0;
}

struct LibraryNames {
  const char* onednn;
  const char* aten;
};

LibraryNames library_names(CpuPath path) {
  switch (path) {
    case CpuPath::scalar:
      return {"SSE41", "default"};
    case CpuPath::avx2:
      return {"AVX2", "avx2"};
    case CpuPath::avx512:
      return {"AVX512_CORE", "avx512"};
    case CpuPath::avx512_bf16:
      return {"AVX512_CORE_BF16", "avx512"};
    case CpuPath::amx:
      break;
  }
  return {"ALL", "avx512"};
}

}  // namespace

void use_cpu_path(CpuPath path) {
  set_cpu_path(path);
  hwy::DisableTargets(disabled_targets(path));
}

void follow_cpu_variable() {
  const char* wanted = std::getenv("SLUICE_CPU");
  if (!wanted || !*wanted) return;
  use_cpu_path(cpu_path());
  const LibraryNames names = library_names(cpu_path());
  setenv("ONEDNN_MAX_CPU_ISA", names.onednn, /*overwrite=*/1);
  setenv("ATEN_CPU_CAPABILITY", names.aten, /*overwrite=*/1);
}

}  // namespace sluice::kernels
