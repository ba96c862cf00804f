#pragma once
// How the C library treats freed memory.

namespace sluice {

// Keeps freed memory in the process instead of giving large blocks back to the system each time: touching
// fresh pages costs more than most of what is computed on them.  Once, at the start of a program.
void keep_freed_memory();

// Gives back to the system what is free now: between phases of a run, whose memory has little in common.
void give_back_freed_memory();

}  // namespace sluice
