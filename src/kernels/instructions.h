#pragma once
// SLUICE_CPU for everything that computes in this process: our own kernels (base/cpu_path.h), those written
// with Highway, and the libraries below, which look at their own variables when they first compute.

#include "base/cpu_path.h"

namespace sluice::kernels {

// At the start of a program, before anything is computed.  Without SLUICE_CPU nothing changes.  Error(usage)
// as cpu_path().
void follow_cpu_variable();

// Our own kernels and Highway's, from now on; one of cpu_paths().
void use_cpu_path(CpuPath path);

}  // namespace sluice::kernels
