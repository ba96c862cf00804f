#pragma once
// A folder that appears under its name when everything in it is complete.  Until then it is "<name>.partial"
// beside the target, and survives the end of the process: the next run with the same manifest goes on in it.
// One process at a time; one thread.

#include "base/temporary_file.h"
#include "weights/quantize/manifest.h"

#include <filesystem>
#include <string>

namespace sluice::weights {

// Error(usage) if `target` cannot become such a folder: it exists and may not be overwritten, or it may and
// is no folder of a model.  An empty folder counts as none.
void check_target_folder(const std::filesystem::path& target, Existing existing);

class PartialFolder {
 public:
  // Takes up what an earlier run left, or begins.  Error(usage) naming what differs if that run was another
  // or still goes on; Error(io).
  PartialFolder(std::filesystem::path target, QuantizationManifest manifest);
  ~PartialFolder();  // removes a folder in which nothing was finished
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const QuantizationManifest& manifest() const { return manifest_; }
  // nullptr unless this file was finished, by this run or one before.
  const FinishedFile* finished(const std::string& name) const;

  // The file lies in the folder, flushed; from now on it is not made again.
  void add(FinishedFile file);

  // Error(io); the folder keeps its partial name then.
  void commit(Existing existing);

 private:
  void take_lock();
  void take_up();
  void remove_leftovers() const;  // of a process that was killed while it wrote
  void save(Times times) const;

  std::filesystem::path target_, path_;
  QuantizationManifest manifest_;
  int lock_ = -1;
  bool committed_ = false;
};

}  // namespace sluice::weights
