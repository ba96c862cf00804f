#pragma once
// First touches of memory: what a page costs before anything can be read into it.

#include <cstddef>
#include <span>

namespace sluice::bytes {

// Makes every page that `memory` lies in present and writable; no byte of it changes, also while other
// threads write to it.  Any thread; spans of several threads may meet in a page.  Error(does_not_fit) where
// the system has no memory left.
void touch_pages(std::span<std::byte> memory);

}  // namespace sluice::bytes
