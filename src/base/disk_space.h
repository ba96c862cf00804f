#pragma once
// Room on a disk, asked for before anything is written.

#include <sluice/units.h>

#include <filesystem>

namespace sluice {

// Error(does_not_fit) if the folder of `file` has less than `needed` bytes free.
void require_disk_space(const std::filesystem::path& file, Bytes needed);

}  // namespace sluice
