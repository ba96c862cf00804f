#pragma once
// A file that appears under its name only when it is complete: written to a temporary name in the same
// folder, then flushed and renamed.  Destroying it before commit() removes what was written.  One thread at a
// time.

#include <filesystem>
#include <functional>
#include <string_view>

namespace sluice {

enum class Existing { refuse, overwrite };

// no: the file outlives the program, but not for certain a power cut.
enum class Flush { no, yes };

// Error(usage / io) at once, before any work, when `target` cannot become a file: its folder is missing or
// read-only, it is a folder or a device, or it exists and may not be overwritten (hint: --overwrite).
void check_target(const std::filesystem::path& target, Existing existing);

class TemporaryFile {
 public:
  // Creates "<folder>/.<name>.<random>.partial", empty.  A target that is a symbolic link stays one: what it
  // points to is replaced.  Error(io) names the path and the system's reason.
  explicit TemporaryFile(std::filesystem::path target);
  ~TemporaryFile();
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;

  const std::filesystem::path& path() const { return temporary_; }  // write here
  const std::filesystem::path& target() const { return target_; }

  // fsync of the file, rename onto the target, fsync of the folder.  Error(io).  A target that was not there
  // when this began and is there now is somebody else's: it stays, the finished file keeps its temporary
  // name, and Error(io) names that.
  void commit(Flush flush = Flush::yes);

 private:
  bool rename_new();

  std::filesystem::path target_;
  std::filesystem::path destination_;  // the target, or what it points to
  std::filesystem::path temporary_;    // empty: nothing to remove any more
  bool replaces_ = false;              // there was a file of the target's name at the start
};

// A small text file, whole.  Error(io).
void write_text(const std::filesystem::path& target, std::string_view text, Flush flush = Flush::yes);

// Removes what killed runs left in `folder` under temporary names, of targets that `wanted` says: nobody may
// be writing those now.  Names that were too long to be kept whole are not recognized.
void remove_abandoned(const std::filesystem::path& folder,
                      const std::function<bool(std::string_view target_name)>& wanted);

}  // namespace sluice
