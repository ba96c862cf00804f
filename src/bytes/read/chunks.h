#pragma once
// Cuts a large transfer into chunks that a few threads carry out.

#include <sluice/units.h>

#include <functional>

namespace sluice::bytes {

// Calls move(begin, size) for consecutive pieces of [0, total): in the caller's thread if the total is small,
// else from a few threads at once.  The first exception of any of them is thrown here, after all have
// stopped.
void for_each_chunk(Bytes total, const std::function<void(Bytes begin, Bytes size)>& move);
// The same with this many threads, the caller's one of them, however small the total; 0 counts as 1.  Pieces
// begin at multiples of 8 MiB.
void for_each_chunk(Bytes total, unsigned threads, const std::function<void(Bytes begin, Bytes size)>& move);

}  // namespace sluice::bytes
