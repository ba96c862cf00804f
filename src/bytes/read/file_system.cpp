#include "bytes/read/file_system.h"

#include <fmt/format.h>

#include <sys/statfs.h>
#include <sys/sysmacros.h>
#include <fstream>
#include <sstream>

namespace sluice::bytes {
namespace {

constexpr std::uint32_t kFuse = 0x65735546;

struct KnownFileSystem {
  std::uint32_t number;
  const char* name;
  FileSystemKind kind = FileSystemKind::local;
};
constexpr auto kMemory = FileSystemKind::memory;
constexpr auto kNetwork = FileSystemKind::network;
constexpr auto kStacked = FileSystemKind::stacked;
// linux/magic.h, and the file systems' own headers for those that are not in it.
constexpr KnownFileSystem kKnown[] = {
    {0xef53, "ext4"},
    {0x58465342, "xfs"},
    {0x9123683e, "btrfs"},
    {0xf2f52010, "f2fs"},
    {0x2fc12fc1, "zfs"},
    {0xca451a4e, "bcachefs"},
    {0x01021994, "tmpfs", kMemory},
    {0x858458f6, "ramfs", kMemory},
    {0x958458f6, "hugetlbfs", kMemory},
    {0x794c7630, "overlayfs", kStacked},
    {0xf15f, "ecryptfs", kStacked},
    {0x6969, "nfs", kNetwork},
    {0xff534d42, "cifs", kNetwork},
    {0xfe534d42, "smb2", kNetwork},
    {0x517b, "smb", kNetwork},
    {kFuse, "fuse", kNetwork},
    {0x01021997, "9p", kNetwork},
    {0x00c36400, "ceph", kNetwork},
    {0x0bd00bd0, "lustre", kNetwork},
    {0x47504653, "gpfs", kNetwork},
    {0x19830326, "beegfs", kNetwork},
    {0x5346414f, "afs", kNetwork},
    {0x6b414653, "afs", kNetwork},
    {0x73757245, "coda", kNetwork},
    {0x786f4256, "vboxsf", kNetwork},
    {0x7461636f, "ocfs2"},
    {0x01161970, "gfs2"},
    {0x73717368, "squashfs"},
    {0xe0f5e1e2, "erofs"},
    {0x9660, "iso9660"},
    {0x2011bab0, "exfat"},
    {0x4d44, "vfat"},
    {0x5346544e, "ntfs"},
    {0x7366746e, "ntfs3"},
};

}  // namespace

FileSystem known_file_system(std::uint32_t number) {
  for (const KnownFileSystem& known : kKnown) {
    if (known.number == number) return {known.name, known.kind};
  }
  return {fmt::format("file system {:#x}", number), FileSystemKind::local};
}

// "36 35 98:0 /root /mount/point options optional fields - fuse.sshfs source options"
std::string mounted_name(std::istream& mount_table, std::uint64_t device) {
  const std::string wanted = fmt::format("{}:{}", gnu_dev_major(device), gnu_dev_minor(device));
  for (std::string line; std::getline(mount_table, line);) {
    std::istringstream fields(line);
    std::string mount, parent, number, field, name;
    fields >> mount >> parent >> number;
    if (number != wanted) continue;
    while (fields >> field && field != "-") {
    }
    fields >> name;
    return name;
  }
  return {};
}

FileSystem file_system(const File& file) {
  struct statfs status {};
  if (::fstatfs(file.descriptor(), &status) != 0) return {"unknown file system", FileSystemKind::local};
  // The type of f_type has a sign on some machines.
  const auto number = static_cast<std::uint32_t>(status.f_type);
  FileSystem found = known_file_system(number);
  if (number == kFuse) {
    std::ifstream mount_table("/proc/self/mountinfo");
    if (std::string name = mounted_name(mount_table, file.identity().device); !name.empty())
      found.name = name;
  }
  return found;
}

std::string file_system_name(const File& file) {
  return file_system(file).name;
}

}  // namespace sluice::bytes
