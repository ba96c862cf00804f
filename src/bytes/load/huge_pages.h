#pragma once
// Whether memory for tensors is better taken in huge pages.  On bare metal they make first touches cheap; on
// virtual machines whose host takes freed memory back they may cost many times more a byte.  So it is
// measured.

#include <string_view>

namespace sluice::bytes {

// From the text of /sys/kernel/mm/transparent_hugepage/enabled, "always [madvise] never": whether a program
// that asks is given huge pages.
bool offers_huge_pages(std::string_view enabled);

// Touches a few MiB of both kinds, the first time it is called (below 30 ms); the answer holds for the
// process. Any thread.
bool huge_pages_pay();

}  // namespace sluice::bytes
