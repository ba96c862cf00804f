#include "cli/bench_figures.h"

#include "cli/figures.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace sluice::cli {
namespace {

using nlohmann::json;

constexpr unsigned kLeastRounds = 3;

struct Rates {
  double median = 0, lowest = 0, highest = 0;  // GiB/s
};

Rates rates_of(const BenchRow& row, Bytes bytes) {
  const auto [fastest, slowest] = std::ranges::minmax(row.seconds);
  return {gib_per_second(bytes, median(row.seconds)), gib_per_second(bytes, slowest),
          gib_per_second(bytes, fastest)};
}

// Conditions in the order of their rows; within one, the fastest first.
std::vector<BenchRow> sorted(const BenchFigures& figures) {
  std::vector<BenchRow> rows = figures.rows;
  std::ranges::stable_sort(rows, {}, [](const BenchRow& row) {
    return std::tuple(row.cache != "warm", row.into != "touched", median(row.seconds));
  });
  return rows;
}

std::string shown_way(const BenchRow& row) {
  return row.way == row.backend ? row.way : fmt::format("{} ({})", row.way, row.backend);
}

std::string row_line(const BenchRow& row, Bytes bytes) {
  const Rates rates = rates_of(row, bytes);
  return fmt::format("{:<6}{:<9}{:<24}{:>8.2f}{:>10.2f}{:>8.2f}{:>9.2f}\n", row.cache, row.into,
                     shown_way(row), rates.median, rates.lowest, rates.highest, median(row.cpu_seconds));
}

const BenchRow* find_auto(const BenchFigures& figures, const BenchRow& like) {
  auto found = std::ranges::find_if(figures.rows, [&](const BenchRow& row) {
    return row.way == "auto" && row.cache == like.cache && row.into == like.into;
  });
  return found == figures.rows.end() ? nullptr : &*found;
}

bool clearly_faster(const BenchRow& row, const BenchRow& automatic) {
  return std::ranges::max(row.seconds) < std::ranges::min(automatic.seconds);
}

}  // namespace

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::string recommendation(const BenchFigures& figures) {
  if (figures.rounds < kLeastRounds)
    return fmt::format("too few rounds to recommend anything: give --rounds {} or more", kLeastRounds);
  std::string better;
  std::pair<std::string, std::string> named;  // the condition for which the best way is in there already
  for (const BenchRow& row : sorted(figures)) {
    const BenchRow* automatic = find_auto(figures, row);
    const std::pair condition(row.cache, row.into);
    if (row.way == "raw pread" || automatic == nullptr || named == condition ||
        !clearly_faster(row, *automatic)) {
      continue;
    }
    named = condition;
    better +=
        fmt::format("{}{}, into {} memory: --read-backend {} ({:.2f} x auto)", better.empty() ? "" : "; ",
                    row.cache, row.into, row.way, median(automatic->seconds) / median(row.seconds));
  }
  if (better.empty()) return "leave --read-backend at auto: no other way was clearly faster here";
  return better;
}

std::string as_text(const BenchFigures& figures) {
  std::string text = fmt::format("{}, {}; GiB/s; raw pread: by 4 threads, the limit of what is cached\n",
                                 format_bytes(figures.bytes), counted(figures.rounds, "round"));
  text += fmt::format("{:<6}{:<9}{:<24}{:>8}{:>10}{:>8}{:>9}\n", "cache", "into", "way", "median", "lowest",
                      "highest", "CPU s");
  for (const BenchRow& row : sorted(figures)) text += row_line(row, figures.bytes);
  for (const BenchRow& row : figures.rows) {
    if (row.way == "auto")
      text += fmt::format("auto, {}, {}: {}: {}\n", row.cache, row.into, row.backend, row.reason);
  }
  for (const std::string& line : figures.left_out) text += fmt::format("left out: {}\n", line);
  return text + recommendation(figures) + "\n";
}

json as_json(const BenchFigures& figures) {
  json object = {{"bytes", figures.bytes},
                 {"rounds", figures.rounds},
                 {"results", json::array()},
                 {"left_out", figures.left_out},
                 {"recommendation", recommendation(figures)}};
  for (const BenchRow& row : sorted(figures)) {
    const Rates rates = rates_of(row, figures.bytes);
    object["results"].push_back({{"cache", row.cache},
                                 {"into", row.into},
                                 {"way", row.way},
                                 {"backend", row.backend},
                                 {"reason", row.reason},
                                 {"seconds", row.seconds},
                                 {"gib_per_second", rates.median},
                                 {"lowest", rates.lowest},
                                 {"highest", rates.highest},
                                 {"cpu_seconds", median(row.cpu_seconds)}});
  }
  return object;
}

}  // namespace sluice::cli
