#pragma once
// Which file system a file lies on.

#include "base/file.h"

#include <string>

namespace sluice::bytes {

// "ext4", "overlayfs", "nfs", …; "file system 0x1234" where the number is all there is to say.
std::string file_system_name(const File& file);

}  // namespace sluice::bytes
