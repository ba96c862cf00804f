#pragma once
// Memory for tensors, taken once and used again.  The first touch of a page costs more here than computing
// what goes into it, and memory that is given back and taken again is touched anew: so large tensors come
// from one range of addresses that grows to what a phase needs at once and stays there.  How large it grew,
// and how large it may, is known; what is beyond the limit is refused as Error(does_not_fit), which a run can
// answer.
//
// A property of the process, like the number of threads; every function from any thread.

#include <sluice/units.h>

namespace sluice::kernels {

// From here on CPU tensors are allocated in the pool; those that exist are left as they are.  Where the
// system does not grant the range of addresses (a limit on address space) nothing changes.
void install_memory_pool();

struct PoolFigures {
  Bytes live = 0;       // in tensors now
  Bytes peak_live = 0;  // the most since the last begin_pool_phase()
  Bytes extent = 0;     // of the range that was used since then: touched memory, at most
};
PoolFigures pool_figures();

// What was used stays touched, up to `keep` bytes from the start; free pages above go back to the system.
// The figures begin anew.
void begin_pool_phase(Bytes keep);

// No tensor is allocated that would make the range larger; 0: as large as the machine's memory.
void limit_memory_pool(Bytes limit);

}  // namespace sluice::kernels
