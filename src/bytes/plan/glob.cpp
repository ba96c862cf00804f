#include "bytes/plan/glob.h"

#include <sluice/transforms.h>

#include <algorithm>

namespace sluice {
namespace bytes {
namespace {

// Tells `star(index, at, length)` what the stars stand for, each time that it is tried again.  Only the last
// star met so far is ever extended: what lies before it matched with the least, and extending an earlier star
// could not match more than the last one can.
template <typename OnStar>
bool match(std::string_view glob, std::string_view name, OnStar star) {
  constexpr std::size_t kNone = std::string_view::npos;
  std::size_t g = 0, n = 0;
  std::size_t after_star = kNone, star_begin = 0, star_end = 0, stars = 0;
  while (true) {
    if (g < glob.size() && glob[g] == '*') {
      after_star = ++g;
      star_begin = star_end = n;
      star(stars++, star_begin, std::size_t{0});
    } else if (g < glob.size() && n < name.size() && (glob[g] == '?' || glob[g] == name[n])) {
      ++g, ++n;
    } else if (g == glob.size() && n == name.size()) {
      return true;
    } else if (after_star != kNone && star_end < name.size()) {
      g = after_star;
      n = ++star_end;
      star(stars - 1, star_begin, star_end - star_begin);
    } else {
      return false;
    }
  }
}

}  // namespace

std::optional<Captures> glob_capture(std::string_view glob, std::string_view name) {
  Captures captures;
  auto note = [&](std::size_t star, std::size_t at, std::size_t length) {
    captures.resize(star + 1);
    captures[star] = name.substr(at, length);
  };
  if (!match(glob, name, note)) return std::nullopt;
  return captures;
}

std::size_t count_stars(std::string_view glob) {
  return static_cast<std::size_t>(std::ranges::count(glob, '*'));
}

std::string fill_stars(std::string_view pattern, const Captures& captures) {
  std::string filled;
  std::size_t star = 0;
  for (char c : pattern) {
    if (c == '*') {
      filled += captures.at(star++);
    } else {
      filled += c;
    }
  }
  return filled;
}

}  // namespace bytes

bool glob_matches(std::string_view glob, std::string_view name) {
  return bytes::match(glob, name, [](std::size_t, std::size_t, std::size_t) {});
}

}  // namespace sluice
