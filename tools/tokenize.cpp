// Prints the token ids of texts: `tokenize tokenizer.json < texts`, texts separated by NUL bytes.  One line a
// text, ids separated by spaces; an error of a text is the line "error: …".  bench/tokenizer_parity compares
// them with the reference's.
#include "models/ltx2/text/tokenizer.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

std::string line_of(const sluice::ltx2::Tokenizer& tokenizer, std::string_view text) {
  try {
    return fmt::format("{}", fmt::join(tokenizer.encode(text), " "));
  } catch (const sluice::Error& e) {
    return fmt::format("error: {}", e.what());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: tokenize TOKENIZER_JSON < TEXTS\n";
    return 2;
  }
  try {
    auto tokenizer = sluice::ltx2::Tokenizer::load(arguments[1]);
    std::string input(std::istreambuf_iterator<char>(std::cin), {});
    std::string_view rest = input;
    while (!rest.empty()) {
      std::string_view text = rest.substr(0, rest.find('\0'));
      rest.remove_prefix(std::min(rest.size(), text.size() + 1));
      fmt::print("{}\n", line_of(tokenizer, text));
    }
  } catch (const sluice::Error& e) {
    std::cerr << fmt::format("tokenize: error: {}\n  {}\n", e.what(), e.hint());
    return sluice::error_kind_info(e.kind()).exit_code;
  }
  return 0;
}
