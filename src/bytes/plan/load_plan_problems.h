#pragma once
// Everything that is wrong with a request for a load, collected so that one message tells it all.

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::bytes {

class PlanProblems {
 public:
  void impossible(std::string what) { impossible_.push_back(std::move(what)); }  // with any checkpoint
  void misfit(std::string what) { misfits_.push_back(std::move(what)); }         // with this one
  bool empty() const { return impossible_.empty() && misfits_.empty(); }

  // Error(usage) if something is impossible, else Error(mismatch); nothing if there is no problem.
  void throw_if_any(const std::filesystem::path& checkpoint) const;

 private:
  std::vector<std::string> impossible_, misfits_;
};

}  // namespace sluice::bytes
