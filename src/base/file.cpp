#include "base/file.h"

#include "base/syscalls.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

Error open_error(const std::filesystem::path& path, int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return Error(ErrorKind::bad_input, fmt::format("{}: no such file", path.string()), "check the path");
    case EISDIR:
      return Error(ErrorKind::bad_input, fmt::format("{}: is a folder, not a file", path.string()),
                   "give a file inside it");
    case ENAMETOOLONG:
    case ELOOP:
      return Error(ErrorKind::bad_input, fmt::format("{}: {}", path.string(), system_reason(error_number)),
                   "check the path");
    default:
      return Error(ErrorKind::io,
                   fmt::format("{}: cannot open: {}", path.string(), system_reason(error_number)),
                   system_remedy(error_number));
  }
}

int open_descriptor(const std::filesystem::path& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = syscalls().open(path.c_str(), flags | O_CLOEXEC);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) throw open_error(path, errno);
  return descriptor;
}

}  // namespace

Syscalls& syscalls() {
  static Syscalls table;
  return table;
}

std::string system_reason(int error_number) {
  std::string reason = std::generic_category().message(error_number);
  if (!reason.empty()) reason[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(reason[0])));
  return reason;
}

std::string system_remedy(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "the disk is full: free space or write to another disk";
    case EDQUOT:
      return "the disk quota is used up: free space or write to another disk";
    case EFBIG:
      return "the file is larger than the file system or `ulimit -f` allows: write elsewhere or raise the "
             "limit";
    case EACCES:
    case EPERM:
      return "check the permissions of the file and its folders";
    case EROFS:
      return "the file system is read-only: write elsewhere";
    case EMFILE:
    case ENFILE:
      return "too many files are open: raise `ulimit -n`";
    case ENOMEM:
      return "the address space or memory limit is reached: raise `ulimit -v`";
    case EIO:
      return "the disk or network mount fails: see the system log";
    default:
      return {};
  }
}

File File::open(const std::filesystem::path& path) {
  // Without O_NONBLOCK the open of a FIFO would wait for its other end.
  File file(open_descriptor(path, O_RDONLY | O_NONBLOCK), path);
  struct stat status {};
  if (::fstat(file.descriptor_, &status) != 0) throw open_error(path, errno);
  if (S_ISDIR(status.st_mode)) throw open_error(path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: is no regular file", path.string()),
                "copy the data into a file first");
  }
  return file;
}

File File::open_for_writing(const std::filesystem::path& path) {
  return File(open_descriptor(path, O_WRONLY), path);
}

File::File(File&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), path_(std::move(other.path_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(path_, other.path_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

FileIdentity File::identity() const {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) {
    throw Error(ErrorKind::io, fmt::format("{}: cannot stat: {}", path_.string(), system_reason(errno)),
                system_remedy(errno));
  }
  return {status.st_dev, status.st_ino, static_cast<Bytes>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

void read_exact(const File& file, std::span<std::byte> to, Bytes offset, std::string_view what) {
  std::size_t done = 0;
  while (done < to.size()) {
    std::size_t wanted = std::min<std::size_t>(to.size() - done, kMostPerCall);
    ssize_t got =
        syscalls().pread(file.descriptor(), to.data() + done, wanted, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw cannot_read(file, what, offset + done, errno);
    if (got == 0) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: the file ends at byte {} while reading {}: {} of {} bytes are missing",
                              file.path().string(), offset + done, what, to.size() - done, to.size()),
                  "the file was cut short: fetch it again and keep it unchanged while it is in use");
    }
    done += static_cast<std::size_t>(got);
  }
}

Error cannot_read(const File& file, std::string_view what, Bytes offset, int error_number) {
  return Error(ErrorKind::io,
               fmt::format("{}: cannot read {} at byte {}: {}", file.path().string(), what, offset,
                           system_reason(error_number)),
               system_remedy(error_number));
}

void write_all(const File& file, std::span<const std::byte> bytes, const std::filesystem::path& name) {
  while (!bytes.empty()) {
    ssize_t put =
        syscalls().write(file.descriptor(), bytes.data(), std::min<std::size_t>(bytes.size(), kMostPerCall));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      int error_number = errno;
      throw Error(ErrorKind::io,
                  fmt::format("{}: cannot write: {}", name.string(), system_reason(error_number)),
                  system_remedy(error_number));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

std::string read_text(const std::filesystem::path& path, Bytes limit) {
  File file = File::open(path);
  Bytes size = file.identity().size;
  if (size > limit) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: has {}, more than the {} such a file may have", path.string(),
                            format_bytes(size), format_bytes(limit)),
                "check that this is the file you mean");
  }
  std::string text(size, '\0');
  read_exact(file, std::as_writable_bytes(std::span(text)), 0, "the text");
  return text;
}

}  // namespace sluice
