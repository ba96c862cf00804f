#include "bytes/file_system.h"

#include <fmt/format.h>

#include <sys/statfs.h>

namespace sluice::bytes {
namespace {

struct KnownFileSystem {
  std::uint32_t number;
  const char* name;
};
// linux/magic.h, and the file systems' own headers for those that are not in it.
constexpr KnownFileSystem kKnown[] = {
    {0xef53, "ext4"},          {0x58465342, "xfs"},       {0x9123683e, "btrfs"}, {0xf2f52010, "f2fs"},
    {0x2fc12fc1, "zfs"},       {0xca451a4e, "bcachefs"},  {0x01021994, "tmpfs"}, {0x858458f6, "ramfs"},
    {0x958458f6, "hugetlbfs"}, {0x794c7630, "overlayfs"}, {0x6969, "nfs"},       {0xff534d42, "cifs"},
    {0xfe534d42, "smb2"},      {0x517b, "smb"},           {0x65735546, "fuse"},  {0x01021997, "9p"},
    {0x00c36400, "ceph"},      {0x0bd00bd0, "lustre"},    {0x47504653, "gpfs"},  {0x19830326, "beegfs"},
    {0x5346414f, "afs"},       {0x6b414653, "afs"},       {0x73757245, "coda"},  {0x7461636f, "ocfs2"},
    {0x01161970, "gfs2"},      {0x73717368, "squashfs"},  {0xe0f5e1e2, "erofs"}, {0x9660, "iso9660"},
    {0x2011bab0, "exfat"},     {0x4d44, "vfat"},          {0x5346544e, "ntfs"},  {0x7366746e, "ntfs3"},
    {0xf15f, "ecryptfs"},      {0x786f4256, "vboxsf"},
};

}  // namespace

std::string file_system_name(const File& file) {
  struct statfs status {};
  if (::fstatfs(file.descriptor(), &status) != 0) return "unknown file system";
  // The type of f_type has a sign on some machines.
  const auto number = static_cast<std::uint32_t>(status.f_type);
  for (const KnownFileSystem& known : kKnown) {
    if (known.number == number) return known.name;
  }
  return fmt::format("file system {:#x}", number);
}

}  // namespace sluice::bytes
