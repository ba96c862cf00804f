#include "cli/commands.h"

#include "base/file.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace sluice::cli {
namespace {

// SLUICE_COMPUTE is where it lies as seen from this program's folder, installed or just built.
std::filesystem::path computing_program() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / SLUICE_COMPUTE).lexically_normal();
}

}  // namespace

void hand_over(const Context& context) {
  // The other program installs its own handlers: what this one's has noted would be lost.
  if (context.cancel.cancelled()) throw Error(ErrorKind::interrupted, "interrupted");
  const std::filesystem::path program = computing_program();
  ::execv(program.c_str(), context.arguments);
  throw Error(ErrorKind::io, fmt::format("{}: cannot start: {}", program.string(), system_reason(errno)),
              "this is the part of sluice that computes: install all of sluice, or build it with LibTorch");
}

Action add_handed_over(CLI::App& app) {
  app.set_help_flag();
  app.prefix_command();
  return [](const Context& context) { hand_over(context); };
}

}  // namespace sluice::cli
