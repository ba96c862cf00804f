#include "base/temporary_file.h"

#include "base/file.h"
#include "base/syscalls.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <cerrno>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;

// The longest file name of the usual file systems.
constexpr std::size_t kMostNameBytes = 255;
constexpr std::string_view kTemporaryEnding = ".partial";
constexpr std::size_t kTagDigits = 8;

fs::path folder_of(const fs::path& path) {
  fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// Renaming onto a symbolic link would replace the link.
fs::path resolve(const fs::path& target) {
  std::error_code error;
  if (!fs::is_symlink(target, error)) return target;
  fs::path resolved = fs::canonical(target, error);
  return error ? target : resolved;
}

// ".<name>.<tag>.partial", with the name cut where it would become too long, between characters.
std::string temporary_name(std::string name, std::uint64_t tag) {
  std::string ending = fmt::format(".{:0{}x}{}", tag & 0xffffffff, kTagDigits, kTemporaryEnding);
  std::size_t most = kMostNameBytes - 1 - ending.size();
  if (name.size() > most) {
    while (most > 0 && (static_cast<unsigned char>(name[most]) & 0xc0) == 0x80) --most;
    name.resize(most);
  }
  return "." + name + ending;
}

// The target's name in a temporary one; empty for any other name.
std::string_view target_name(std::string_view temporary) {
  constexpr std::size_t kBehind = 1 + kTagDigits + kTemporaryEnding.size();
  if (temporary.size() <= 1 + kBehind || !temporary.starts_with('.') ||
      !temporary.ends_with(kTemporaryEnding))
    return {};
  const std::string_view behind = temporary.substr(temporary.size() - kBehind);
  const std::string_view tag = behind.substr(1, kTagDigits);
  if (behind[0] != '.' || tag.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  return temporary.substr(1, temporary.size() - 1 - kBehind);
}

Error cannot(std::string_view what, const fs::path& target, int error_number) {
  return Error(ErrorKind::io,
               fmt::format("{}: cannot {}: {}", target.string(), what, system_reason(error_number)),
               system_remedy(error_number));
}

// Makes the renaming itself survive a power cut.  Some file systems cannot flush a folder: then that is
// theirs to do.
void flush_folder(const fs::path& folder) {
  int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  syscalls().fsync(descriptor);
  ::close(descriptor);
}

}  // namespace

void check_target(const fs::path& target, Existing existing) {
  std::string shown = target.string();
  if (target.empty())
    throw Error(ErrorKind::usage, "the name of the output file is empty", "give a file name");
  struct stat status {};
  bool found = ::stat(target.c_str(), &status) == 0;
  int error_number = found ? 0 : errno;
  if ((found && S_ISDIR(status.st_mode)) || target.filename().empty()) {
    throw Error(ErrorKind::usage, fmt::format("{}: is a folder, not a file", shown), "add a file name");
  }
  if (found && !S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::usage, fmt::format("{}: is a device or pipe, not a file", shown),
                "give the name of a file: output is renamed into place when it is complete");
  }
  if (found && existing == Existing::refuse) {
    throw Error(ErrorKind::usage, fmt::format("{}: exists already", shown),
                "give another name, or --overwrite to replace it");
  }
  if (error_number == ENAMETOOLONG || error_number == ELOOP) {
    throw Error(ErrorKind::usage, fmt::format("{}: {}", shown, system_reason(error_number)),
                "give a shorter name");
  }
  fs::path folder = folder_of(resolve(target));
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw Error(ErrorKind::usage, fmt::format("{}: its folder {} does not exist", shown, folder.string()),
                "create the folder first");
  }
  // Permissions, read-only mounts and quotas answer to a try alone.
  TemporaryFile probe(target);
}

TemporaryFile::TemporaryFile(fs::path target) : target_(std::move(target)), destination_(resolve(target_)) {
  std::random_device random;
  int descriptor = -1;
  fs::path candidate;
  do {
    candidate = folder_of(destination_) / temporary_name(destination_.filename().string(), random());
    descriptor = ::open(candidate.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor < 0 && (errno == EINTR || errno == EEXIST));
  if (descriptor < 0) throw cannot("create a file in its folder", target_, errno);
  ::close(descriptor);
  temporary_ = std::move(candidate);
  std::error_code ignored;
  replaces_ = fs::exists(destination_, ignored);
}

TemporaryFile::TemporaryFile(TemporaryFile&& other) noexcept
    : target_(std::move(other.target_)),
      destination_(std::move(other.destination_)),
      temporary_(std::exchange(other.temporary_, {})),
      replaces_(other.replaces_) {}

TemporaryFile::~TemporaryFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void TemporaryFile::commit(Flush flush) {
  if (flush == Flush::yes) {
    File written = File::open_for_writing(temporary_);
    if (syscalls().fsync(written.descriptor()) != 0) throw cannot("flush to disk", target_, errno);
  }
  if (!rename_new() && ::rename(temporary_.c_str(), destination_.c_str()) != 0)
    throw cannot("rename the finished file", target_, errno);
  temporary_.clear();
  if (flush == Flush::yes) flush_folder(folder_of(destination_));
}

// True if the file has its name now; false if a plain rename has to do.
bool TemporaryFile::rename_new() {
  if (replaces_) return false;
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, destination_.c_str(), RENAME_NOREPLACE) == 0)
    return true;
  if (errno != EEXIST) return false;  // not every file system knows it
  const fs::path kept = std::exchange(temporary_, {});
  throw Error(ErrorKind::io, fmt::format("{}: somebody else made this file meanwhile", target_.string()),
              fmt::format("the finished file is {}: give it the name that you want", kept.string()));
}

void write_text(const fs::path& target, std::string_view text, Flush flush) {
  TemporaryFile file(target);
  write_all(File::open_for_writing(file.path()), std::as_bytes(std::span(text)), target);
  file.commit(flush);
}

void remove_abandoned(const fs::path& folder,
                      const std::function<bool(std::string_view target_name)>& wanted) {
  std::error_code ignored;
  std::vector<fs::path> abandoned;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    const std::string name = entry->path().filename().string();
    const std::string_view target = target_name(name);
    if (!target.empty() && wanted(target)) abandoned.push_back(entry->path());
  }
  for (const fs::path& file : abandoned) fs::remove(file, ignored);
}

}  // namespace sluice
