#pragma once
// What `sluice bench load` measured, and what follows from it: pure functions from figures to text.

#include <sluice/units.h>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace sluice::cli {

// One way of reading under one condition, once a round.
struct BenchRow {
  std::string cache;                         // "warm", "cold"
  std::string into;                          // "touched", "fresh"
  std::string way;                           // "raw pread", or as of --read-backend
  std::string backend;                       // what that became: "direct" for "auto"
  std::string reason;                        // why
  std::vector<double> seconds, cpu_seconds;  // a value a round
};

struct BenchFigures {
  Bytes bytes = 0;  // of one run
  unsigned rounds = 0;
  std::vector<BenchRow> rows;
  std::vector<std::string> left_out;  // what could not be measured here, and why
};

double median(std::vector<double> values);  // at least one

// Whether to leave the choice to auto.  Another way is named only where its slowest run beat the fastest of
// auto, in three rounds or more: on a machine that others use too, less is no evidence.
std::string recommendation(const BenchFigures& figures);

std::string as_text(const BenchFigures& figures);
nlohmann::json as_json(const BenchFigures& figures);

}  // namespace sluice::cli
