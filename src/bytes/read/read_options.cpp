#include <sluice/read_options.h>

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <array>

namespace sluice {
namespace {

// The names of an option's values, in one place for both directions.
template <class Value>
struct Named {
  Value value;
  std::string_view name;
};

constexpr std::array kBackends = {
    Named{ReadBackend::automatic, "auto"}, Named{ReadBackend::mmap, "mmap"},
    Named{ReadBackend::pread, "pread"},    Named{ReadBackend::direct, "direct"},
    Named{ReadBackend::uring, "uring"},
};
constexpr std::array kPolicies = {
    Named{CachePolicy::automatic, "auto"},
    Named{CachePolicy::keep, "keep"},
    Named{CachePolicy::drop, "drop"},
    Named{CachePolicy::prefetch, "prefetch"},
};

template <class Table, class Value>
std::string_view name_of(const Table& table, Value value) {
  for (const auto& known : table) {
    if (known.value == value) return known.name;
  }
  throw Error(ErrorKind::internal, fmt::format("no name for option value {}", static_cast<int>(value)));
}

template <class Table>
auto parse(const Table& table, std::string_view name, std::string_view what) {
  std::string names;
  for (const auto& known : table) {
    if (known.name == name) return known.value;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  throw Error(ErrorKind::usage, fmt::format("{} is no {}", in_quotes(name), what), "give one of " + names);
}

}  // namespace

std::string_view to_string(ReadBackend backend) {
  return name_of(kBackends, backend);
}
ReadBackend parse_read_backend(std::string_view name) {
  return parse(kBackends, name, "read backend");
}
std::string_view to_string(CachePolicy policy) {
  return name_of(kPolicies, policy);
}
CachePolicy parse_cache_policy(std::string_view name) {
  return parse(kPolicies, name, "cache policy");
}

}  // namespace sluice
