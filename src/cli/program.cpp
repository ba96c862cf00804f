#include "cli/program.h"

#include "cli/console.h"
#include "cli/usage_error.h"

#include <sluice/error.h>
#include <sluice/version.h>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <iostream>

namespace sluice::cli {
namespace {

constexpr const char* kExitCodes = R"(exit codes:
  0 done, 1 internal error, 2 usage, 3 bad input, 4 does not fit, 5 device or I/O failed, 130 interrupted

not built yet: CUDA, an HTTP server, LTX-2.5)";

CancelToken cancel_token;

// The first signal asks for an orderly end, the second ends at once.
void on_signal(int) {
  if (cancel_token.cancelled()) ::_exit(130);
  cancel_token.cancel();
}

void handle_signals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;  // whoever started the program wants it left alone
    struct sigaction action = {};
    action.sa_handler = on_signal;
    ::sigaction(signal, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full quota is an error of the write, not a death
}

// A program started without standard streams must not find its first files in their places.
void open_standard_streams() {
  for (int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) == -1) [[maybe_unused]]
      int opened = ::open("/dev/null", O_RDWR);
  }
}

struct BuiltCommand {
  CLI::App* app;
  Action action;
};

// Adds a command, and its group with the first of it.
CLI::App* add_command(CLI::App& app, const Command& command) {
  const std::string_view name = command.name;
  const std::size_t space = name.find(' ');
  if (space == std::string_view::npos) return app.add_subcommand(command.name, command.description);
  const std::string group_name(name.substr(0, space)), own_name(name.substr(space + 1));
  const auto there = app.get_subcommands([&](CLI::App* other) { return other->get_name() == group_name; });
  CLI::App* group = there.empty() ? app.add_subcommand(group_name) : there.front();
  group->require_subcommand(1);
  const std::string before = group->get_description();
  group->description(
      fmt::format("{}{}{}: {}", before, before.empty() ? "" : "; ", own_name, command.description));
  return group->add_subcommand(own_name, command.description);
}

// --json must count for errors of parsing itself.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv, argv + argc,
                     [](const char* argument) { return std::string_view(argument) == "--json"; });
}

// "--memory-limit \"$UNSET\"" must not mean that there is none.
void refuse_empty_values(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool text = name == "--prompt" || name == "--negative-prompt";
    if (text || std::ranges::find(option->results(), "") == option->results().end()) continue;
    throw Error(ErrorKind::usage, fmt::format("{} has an empty value", name), "give one, or leave it out");
  }
}

int parse_and_act(std::span<const Command> commands, int argc, char** argv,
                  const std::function<void()>& prepare) {
  CLI::App app{"text to video with sound by LTX-2.3, on machines that are too small for it", "sluice"};
  app.set_version_flag("--version", fmt::format("sluice {}", version()));
  app.require_subcommand(1);
  app.footer(kExitCodes);
  CommonFlags flags{.json = asks_for_json(argc, argv)};
  std::vector<BuiltCommand> built;
  for (const Command& command : commands) {
    CLI::App* added = add_command(app, command);
    built.push_back({added, command.build(*added)});
    add_common(*added, flags);  // behind the command's own, in the help too
  }
  try {
    prepare();
    app.parse(argc, argv);
    for (const BuiltCommand& command : built) refuse_empty_values(*command.app);
    show_messages(flags);
    ProgressDisplay progress(flags);
    for (const BuiltCommand& command : built) {
      if (command.app->parsed()) command.action({flags, progress, cancel_token, argv});
    }
    return 0;
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return show_error(usage_error(error, app), flags);
  } catch (const ErrorInResult& shown) {
    return error_kind_info(shown.kind).exit_code;
  } catch (const Error& error) {
    return show_error(error, flags);
  } catch (const std::bad_alloc&) {
    return show_error(Error(ErrorKind::does_not_fit, "the system refused memory"), flags);
  } catch (const std::filesystem::filesystem_error& error) {
    return show_error(
        Error(ErrorKind::bad_input, fmt::format("{}: {}", error.path1().string(), error.code().message()),
              "check the path"),
        flags);
  } catch (const std::exception& error) {
    return show_error(
        Error(ErrorKind::internal, fmt::format("internal error: {}", error.what()),
              "this is a bug: report it with the command line and the output of sluice --version"),
        flags);
  }
}

}  // namespace

int run_program(std::span<const Command> commands, int argc, char** argv,
                const std::function<void()>& prepare) {
  open_standard_streams();
  handle_signals();
  const int code = parse_and_act(commands, argc, argv, prepare);
  std::cout.flush();
  if (code == 0 && !std::cout) {
    std::cerr << "sluice: the result could not be written to the standard output\n  try: check where it is "
                 "sent to\n";
    return 5;
  }
  return code;
}

}  // namespace sluice::cli
