#pragma once
// Runs every case under a folder and keeps the score.

#include "parity/registry.h"

#include <filesystem>
#include <string>
#include <vector>

namespace sluice::parity {

enum class Verdict { passed, failed, skipped };

struct Outcome {
  std::string name;  // component/case, from the folder
  Verdict verdict = Verdict::failed;
  std::vector<Row> rows;
  std::string reason;  // of a failure without rows, and of skipping
};

struct Score {
  int passed = 0;
  int failed = 0;
  int skipped = 0;

  bool good() const { return failed == 0 && passed > 0; }
};

// folder/*/*/manifest.json, sorted.
std::vector<std::filesystem::path> find_manifests(const std::filesystem::path& folder);

// A malformed manifest is a failure, also of a component that is not covered; so is anything thrown.
Outcome run_case(const std::filesystem::path& manifest, const Registry& registry);

void count(Score& score, const Outcome& outcome);
std::string format_outcome(const Outcome& outcome);  // a line for each row, the reason where there are none
std::string format_score(const Score& score);        // "3 passed, 0 failed, 1 skipped"

}  // namespace sluice::parity
