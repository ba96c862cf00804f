#pragma once
// Which file system a file lies on, and what that means for reading.

#include "base/file.h"

#include <cstdint>
#include <iosfwd>
#include <string>

namespace sluice::bytes {

enum class FileSystemKind {
  local,    // ext4, xfs, …; what is not known
  memory,   // tmpfs: its files are the page cache
  network,  // NFS, SMB, FUSE, …: bytes come from elsewhere, or through a program
  stacked,  // overlayfs: the pages belong to a file of another one
};

struct FileSystem {
  std::string name;  // "ext4", "overlayfs", "nfs", "fuse.sshfs"; "file system 0x1234" where that is all
  FileSystemKind kind = FileSystemKind::local;
};

FileSystem file_system(const File& file);
std::string file_system_name(const File& file);

// By the number that statfs gives.
FileSystem known_file_system(std::uint32_t number);
// The name that a mount table (/proc/self/mountinfo) has for what is mounted with this device; empty if there
// is none.  Tells the many kinds of FUSE apart, virtiofs among them, which share a number.
std::string mounted_name(std::istream& mount_table, std::uint64_t device);

}  // namespace sluice::bytes
