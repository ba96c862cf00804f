#pragma once
// The folder that a run keeps its work in: for which request, which outputs have their names already, and
// that two runs never work with one at a time.  A marker file tells folders made here from any other; those
// are never touched.  What is kept is none of its business.  One thread.

#include "base/temporary_file.h"

#include <sluice/sluice.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sluice::pipeline {

inline constexpr const char* kWorkEnding = ".sluice-work";

// "<first output>.sluice-work" beside the first output that is asked for.
std::filesystem::path default_work_folder(const Outputs& outputs);

// One name for all spellings of an output's, or a folder's, as JSON can hold it: bytes that are no UTF-8
// become U+FFFD.
std::string recorded_name(const std::filesystem::path& output);

struct WorkMarker {
  nlohmann::json identity;
  std::vector<std::string> outputs;        // recorded names of the files that the run writes
  std::vector<std::string> frame_folders;  // recorded names
  std::vector<std::string> finishing;      // of all these, what has its name or was about to get it
  bool made_folder = true;                 // false: there was an empty folder of that name
};

class WorkFolder {
 public:
  // Looks, makes nothing.  Error(usage) if there is something else under that name, or no folder to put it
  // in.
  explicit WorkFolder(std::filesystem::path folder);
  ~WorkFolder();
  WorkFolder(WorkFolder&& other) noexcept;
  WorkFolder& operator=(WorkFolder&&) = delete;

  const std::filesystem::path& path() const { return folder_; }
  // Of an earlier run, or of this one after begin(); empty: there is none.
  const std::optional<WorkMarker>& marker() const { return marker_; }
  bool damaged() const { return damaged_; }  // there is a marker that cannot be read

  // Holds the folder, if it is there, as long as this lives.  False if another run does.
  bool take();

  // Makes the folder if need be, empties it of earlier work, its run's unfinished outputs included, and
  // writes the marker.  Error(io).
  void begin(WorkMarker marker);
  // Goes on with what an earlier run kept; `marker` has this run's outputs.  Error(io).
  void go_on(const WorkMarker& marker);
  // From now on `output` may be there as this run's own.  Error(io).
  void finishing(const std::filesystem::path& output);
  // Removes what was made here, and the folder unless it was there before or something else is in it.
  void remove();

 private:
  void write_marker(Flush flush) const;
  void remove_files() const;

  std::filesystem::path folder_;
  std::optional<WorkMarker> marker_;
  bool damaged_ = false;
  int lock_ = -1;  // the folder, open; -1: not taken
};

}  // namespace sluice::pipeline
