#pragma once
// What the system refused during a load and how that was worked around: told to the log once, kept for the
// report.  Any thread.

#include <mutex>
#include <string>
#include <vector>

namespace sluice::bytes {

class LoadWarnings {
 public:
  void add(const std::string& line);
  std::vector<std::string> lines() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;  // guarded by mutex_
};

}  // namespace sluice::bytes
