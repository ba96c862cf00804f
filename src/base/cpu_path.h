#pragma once
// Which instructions kernels take: the best this processor has, or what SLUICE_CPU names, for tests and to
// find out what a kernel is worth.  One answer for the whole process, from any thread.

#include <span>
#include <string_view>

namespace sluice {

enum class CpuPath {  // each with all instructions of those before
  scalar,             // what every processor of the architecture has
  avx2,               // with FMA
  avx512,             // F, BW, VL, DQ
  avx512_bf16,        // products of bf16 pairs
  amx,                // tiles of bf16
};

std::string_view name(CpuPath path);

// Those that this processor can run, plainest first.
std::span<const CpuPath> cpu_paths();

// Error(usage) where SLUICE_CPU names none of cpu_paths().
CpuPath cpu_path();

// From now on; one of cpu_paths().
void set_cpu_path(CpuPath path);

}  // namespace sluice
