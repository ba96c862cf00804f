// Times the tokenizer: loading, and 100 kB of texts that tempt to quadratic work.
// `tokenizer_speed tokenizer.json`: the best of several runs each, in milliseconds of processor time.
#include "models/ltx2/text/tokenizer.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace {

constexpr std::size_t kTextBytes = 100'000;

// Of processor time: one thread does it all, and other programs on the machine do not count.
double best_milliseconds(int runs, const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < runs; ++run) {
    std::clock_t start = std::clock();
    work();
    best = std::min(best, 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

std::string repeated(std::string_view unit) {
  std::string text;
  while (text.size() + unit.size() <= kTextBytes - 2) text += unit;
  return "x" + text + "x";  // nothing is stripped
}

// Words of many lengths in an order that does not repeat.
std::string prose() {
  constexpr std::string_view kParts[] = {"ka", "tro", "in",   "mel",  "the", "oun",
                                         "s",  "dre", "ight", "ing ", "er ", "on, "};
  std::string text;
  for (std::uint32_t state = 1; text.size() < kTextBytes;) {
    state = state * 1664525 + 1013904223;
    text += kParts[(state >> 16) % std::size(kParts)];
    if (state >> 30 == 0) text += ' ';
  }
  return text;
}

void measure(const std::filesystem::path& path) {
  using sluice::ltx2::Tokenizer;
  fmt::print("load: {:.0f} ms\n", best_milliseconds(5, [&] { Tokenizer::load(path); }));
  Tokenizer tokenizer = Tokenizer::load(path);
  const std::pair<std::string_view, std::string> texts[] = {
      {"prose", prose()},
      {"one letter", repeated("a")},
      {"spaces", repeated(" ")},
      {"newlines", repeated("\n")},
      {"emoji", repeated("🎬")},
      {"Chinese", repeated("猫在雨中的霓虹灯小巷里慢慢地走")},
      {"bytes", repeated("\u0378")},
      {"added tokens", repeated("<unused1")},
  };
  for (const auto& [name, text] : texts) {
    std::size_t ids = 0;
    double time = best_milliseconds(5, [&] { ids = tokenizer.encode(text).size(); });
    fmt::print("{}: {:.1f} ms, {} ids\n", name, time, ids);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: tokenizer_speed TOKENIZER_JSON\n";
    return 2;
  }
  try {
    measure(arguments[1]);
  } catch (const sluice::Error& e) {
    std::cerr << fmt::format("tokenizer_speed: error: {}\n  {}\n", e.what(), e.hint());
    return sluice::error_kind_info(e.kind()).exit_code;
  }
  return 0;
}
