#pragma once
// An open file, owned, and the calls on it wrapped whole: EINTR, short reads and the text of errors are
// settled here. read_exact() may be called from any thread at the same time; write_all() from one.

#include <sluice/error.h>
#include <sluice/units.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

// What tells one state of a file from another.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  Bytes size = 0;
  std::int64_t modified_ns = 0;  // since the epoch

  bool same_file(const FileIdentity& other) const { return device == other.device && inode == other.inode; }
  bool operator==(const FileIdentity&) const = default;
};

class File {
 public:
  // Read only.  Error(bad_input) if there is no such file, it is a folder or no regular file; Error(io) if
  // the system refuses for another reason.
  static File open(const std::filesystem::path& path);
  // Write only, from the start, contents kept.  Error(io).
  static File open_for_writing(const std::filesystem::path& path);
  // Takes over an open descriptor; `path` stands in messages.
  static File adopt(int descriptor, std::filesystem::path path) { return {descriptor, std::move(path)}; }

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  FileIdentity identity() const;  // now

 private:
  File(int descriptor, std::filesystem::path path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_ = -1;
  std::filesystem::path path_;
};

// Linux moves at most 0x7ffff000 bytes in one call; a round number below it keeps later offsets aligned.
inline constexpr Bytes kMostPerCall = GiB(1);

// Fills `to` from `offset`.  Returns only when every byte is there; Error(corrupt_file) where the file ends
// early, Error(io) where the system fails.  `what` stands in the message: "tensor 'x'", "the header".
void read_exact(const File& file, std::span<std::byte> to, Bytes offset, std::string_view what);

// The Error(io) of a read that failed at `offset`.
Error cannot_read(const File& file, std::string_view what, Bytes offset, int error_number);

// Writes all of `bytes` at the file's position.  Error(io), with a hint of its own for a full disk.  `name`
// stands in messages: what the user calls the file, not a temporary name.
void write_all(const File& file, std::span<const std::byte> bytes, const std::filesystem::path& name);

// The whole of a small text file.  Errors of File::open; Error(bad_input) above `limit`.
std::string read_text(const std::filesystem::path& path, Bytes limit);

// "No space left on device" of errno's value, lower case first letter: the end of a message.
std::string system_reason(int error_number);
// What a user can do about it; empty if there is nothing special to say.
std::string system_remedy(int error_number);

}  // namespace sluice
