#include "cli/usage_error.h"

#include "cli/nearest.h"

#include <fmt/format.h>

#include <string>

namespace sluice::cli {
namespace {

// The subcommand that was being parsed, else the program.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.back());
}

std::string full_name(const CLI::App& command) {
  const CLI::App* parent = command.get_parent();
  return parent == nullptr ? command.get_name() : full_name(*parent) + " " + command.get_name();
}

bool has_commands(const CLI::App& app) {
  return !app.get_subcommands([](const CLI::App*) { return true; }).empty();
}

// Between `after` and the end, or the text up to `until`: CLI11 hands over flag and value in its sentence
// only.
std::string part_after(const std::string& text, std::string_view after) {
  const std::size_t at = text.find(after);
  return at == std::string::npos ? std::string() : text.substr(at + after.size());
}

std::string part_until(const std::string& text, std::string_view until) {
  return text.substr(0, text.find(until));
}

}  // namespace

Error usage_error(const CLI::ParseError& error, const CLI::App& app) {
  const CLI::App& command = innermost(app);
  const std::string help = full_name(command) + " --help";
  const std::string words = error.what();
  auto left = command.remaining();
  if (left.empty()) left = app.remaining();

  const bool needs_command =
      dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && has_commands(command);
  if (needs_command && left.empty()) return Error(ErrorKind::usage, "no command given", help);
  // A flag that is unknown says more than what is missing because of it.
  const bool unknown_flag = !left.empty() && left.front().starts_with("-");
  if (needs_command || unknown_flag || dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::string nearest = left.empty() ? std::string() : nearest_flag(left.front(), command);
    return Error(ErrorKind::usage, fmt::format("'{}' is unknown", left.empty() ? words : left.front()),
                 nearest.empty() ? help : fmt::format("did you mean {}?", nearest));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {  // "Could not convert: --width = 1e3"
    const std::string both = part_after(words, "convert: ");
    return Error(ErrorKind::usage,
                 fmt::format("{} '{}' is no number that it can take", part_until(both, " = "),
                             part_after(both, " = ")),
                 help);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string flag = part_until(words, ":");
    return words.ends_with("missing")
               ? Error(ErrorKind::usage, flag + " needs a value", help)
               : Error(ErrorKind::usage, flag + " is given more than once", "give it once");
  }
  return Error(ErrorKind::usage, words, help);
}

}  // namespace sluice::cli
