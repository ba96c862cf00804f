#include "support/program.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace sluice::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLongestWait = std::chrono::seconds(60);
constexpr const char* kProgram = SLUICE_BINARY_DIR "/sluice";

struct Pipe {
  int read_end, write_end;
};

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  return {ends[0], ends[1]};
}

void limit(int resource, std::optional<rlim_t> value) {
  if (!value) return;
  const rlimit both{.rlim_cur = *value, .rlim_max = *value};
  ::setrlimit(resource, &both);
}

// In the child: never returns.
[[noreturn]] void become(const Start& start, std::vector<char*>& arguments, int out, int err) {
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  if (!start.folder.empty() && ::chdir(start.folder.c_str()) != 0) ::_exit(126);
  limit(RLIMIT_FSIZE, start.file_size);
  limit(RLIMIT_AS, start.address_space);
  if (!start.may_ignore_permissions) {
    for (unsigned long capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH})
      ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
  ::setenv("OMP_WAIT_POLICY", "passive",
           0);  // threads that spin starve each other where tests run side by side
  ::execv(start.program.empty() ? kProgram : start.program.c_str(), arguments.data());
  ::_exit(127);
}

// "sluice: <message>\n  try: <hint>\n"
struct ShownError {
  std::string before;  // what stands above it
  std::string message;
  std::string hint;
};

std::optional<ShownError> shown_error(const std::string& err) {
  constexpr std::string_view kFirst = "sluice: ", kLast = "\n  try: ";
  const std::size_t last = err.rfind(kLast);
  if (last == std::string::npos || !err.ends_with('\n')) return std::nullopt;
  ShownError error{.before = {},
                   .message = {},
                   .hint = err.substr(last + kLast.size(), err.size() - 1 - last - kLast.size())};
  if (error.hint.find('\n') != std::string::npos) return std::nullopt;
  const std::size_t above = err.substr(0, last).rfind("\nsluice: ");
  const std::size_t first = above == std::string::npos ? 0 : above + 1;
  if (err.compare(first, kFirst.size(), kFirst) != 0) return std::nullopt;
  error.before = err.substr(0, first);
  error.message = err.substr(first + kFirst.size(), last - first - kFirst.size());
  for (std::size_t end = error.message.find('\n'); end != std::string::npos;
       end = error.message.find('\n', end + 1)) {
    if (error.message.compare(end + 1, 2, "  ") != 0) return std::nullopt;
  }
  return error;
}

class FailsMatcher : public ::testing::MatcherInterface<const Outcome&> {
 public:
  FailsMatcher(int code, ::testing::Matcher<std::string> message, ::testing::Matcher<std::string> hint,
               bool alone)
      : code_(code), message_(std::move(message)), hint_(std::move(hint)), alone_(alone) {}

  bool MatchAndExplain(const Outcome& outcome, ::testing::MatchResultListener*) const override {
    const auto error = shown_error(outcome.err);
    return outcome.code == code_ && error && !error->hint.empty() && (!alone_ || error->before.empty()) &&
           message_.Matches(error->message) && hint_.Matches(error->hint);
  }
  void DescribeTo(std::ostream* out) const override {
    *out << "ends with exit code " << code_ << " and " << (alone_ ? "nothing but" : "at the end")
         << " an error on stderr whose message ";
    message_.DescribeTo(out);
    *out << " and whose hint ";
    hint_.DescribeTo(out);
  }

 private:
  int code_;
  ::testing::Matcher<std::string> message_, hint_;
  bool alone_;
};

}  // namespace

Arguments with(Arguments first, const Arguments& more) {
  for (const std::string& word : more) {
    const auto there = std::find(first.begin(), first.end(), word);
    if (word.starts_with("-") && there != first.end() && there + 1 != first.end())
      first.erase(there, there + 2);
  }
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << "exit code " << outcome.code << ", signal " << outcome.signal << "\nstderr:\n"
       << outcome.err << "stdout:\n"
       << outcome.out;
}

Program::Program(const Start& start) {
  std::vector<std::string> words = with({kProgram}, start.arguments);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const Pipe out = make_pipe(), err = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become(start, arguments, out.write_end, err.write_end);
  ::close(out.write_end);
  ::close(err.write_end);
  out_ = out.read_end;
  err_ = err.read_end;
}

Program::~Program() {
  if (pid_ > 0) {
    kill();
    ::waitpid(pid_, nullptr, 0);
  }
  if (out_ >= 0) ::close(out_);
  if (err_ >= 0) ::close(err_);
}

void Program::kill() {
  ::kill(pid_, SIGKILL);
}

void Program::send(int signal) {
  ::kill(pid_, signal);
}

void Program::wait_for_work() {
  clockid_t clock{};
  if (::clock_getcpuclockid(pid_, &clock) != 0) return;
  auto worked = [clock] {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto deadline = Clock::now() + kLongestWait;
  const auto until = worked() + std::chrono::milliseconds(20);
  while (worked() < until && err_ >= 0 && Clock::now() < deadline) read_once(1);
}

void Program::wait_until_delivered(int signal) {
  const auto deadline = Clock::now() + kLongestWait;
  while (Clock::now() < deadline) {
    std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
    std::uint64_t pending = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("SigPnd:") || line.starts_with("ShdPnd:"))
        pending |= std::stoull(line.substr(7), nullptr, 16);
    }
    if ((pending >> (signal - 1) & 1) == 0) return;
    read_once(1);
  }
}

void Program::read_once(int timeout_ms) {
  std::array<pollfd, 2> ends = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (::poll(ends.data(), ends.size(), timeout_ms) <= 0) return;
  auto take = [](const pollfd& end, int& descriptor, std::string& into) {
    if (end.fd < 0 || end.revents == 0) return;
    std::array<char, 65536> buffer;
    const ssize_t got = ::read(end.fd, buffer.data(), buffer.size());
    if (got > 0) {
      into.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got == 0) {
      ::close(descriptor);
      descriptor = -1;  // poll() skips it
    }
  };
  take(ends[0], out_, outcome_.out);
  take(ends[1], err_, outcome_.err);
}

bool Program::wait_for(std::string_view text) {
  const auto deadline = Clock::now() + kLongestWait;
  while (outcome_.err.find(text) == std::string::npos) {
    if (err_ < 0 || Clock::now() > deadline) return false;
    read_once(100);
  }
  return true;
}

Outcome Program::finish() {
  const auto deadline = Clock::now() + kLongestWait;
  bool killed = false;
  while (out_ >= 0 || err_ >= 0) {
    if (!killed && Clock::now() > deadline) {
      kill();
      killed = true;
    }
    read_once(100);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  if (WIFEXITED(status)) outcome_.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
  return outcome_;
}

Outcome run(const Start& start) {
  return Program(start).finish();
}

::testing::Matcher<const Outcome&> Succeeds() {
  return ::testing::Field("code", &Outcome::code, 0);
}

::testing::Matcher<const Outcome&> Fails(int code, const ::testing::Matcher<std::string>& message,
                                         const ::testing::Matcher<std::string>& hint) {
  return ::testing::MakeMatcher(new FailsMatcher(code, message, hint, false));
}

::testing::Matcher<const Outcome&> Refuses(int code, const ::testing::Matcher<std::string>& message,
                                           const ::testing::Matcher<std::string>& hint) {
  return ::testing::MakeMatcher(new FailsMatcher(code, message, hint, true));
}

}  // namespace sluice::test
