#pragma once
// The built program `sluice` as a child process: its exit code, what it printed, signals on the way.
// One thread; every wait has an end, after which the child is killed and the outcome tells signal 9.

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::test {

using Arguments = std::vector<std::string>;

// `first` and then `more`; a flag of `more` that `first` has too takes its place, with the word behind it.
Arguments with(Arguments first, const Arguments& more);

struct Start {
  Arguments arguments;            // of sluice, without its own name
  std::filesystem::path program;  // empty: the one of this build
  std::filesystem::path folder;   // to run in; empty: this process's
  std::optional<rlim_t> file_size;
  std::optional<rlim_t> address_space;
  bool may_ignore_permissions = true;  // false: those of files hold even where the tests run as root
};

struct Outcome {
  int code = -1;   // -1: it ended by a signal
  int signal = 0;  // that signal
  std::string out;
  std::string err;
};

void PrintTo(const Outcome& outcome, std::ostream* out);

class Program {
 public:
  explicit Program(const Start& start);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // False if it ended, or a minute passed, without `text` on stderr.
  bool wait_for(std::string_view text);
  void send(int signal);
  // Returns once it has worked on for 20 ms of the processors' time from now, or ended.
  void wait_for_work();
  // Returns once no signal waits to be delivered.
  void wait_until_delivered(int signal);
  const std::string& err() const { return outcome_.err; }
  Outcome finish();

 private:
  void read_once(int timeout_ms);
  void kill();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Outcome outcome_;
};

Outcome run(const Start& start);
inline Outcome run(const Arguments& arguments) {
  return run(Start{.arguments = arguments});
}

// Whether this build watches memory itself: limits of address space and counts of memory mean nothing then.
inline constexpr bool kSanitized =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#else
    false;
#endif

// Exit code 0.
::testing::Matcher<const Outcome&> Succeeds();

// The exit code, and at the end of stderr "sluice: <message>", the message's further lines indented, and
// "  try: <hint>".
::testing::Matcher<const Outcome&> Fails(int code, const ::testing::Matcher<std::string>& message,
                                         const ::testing::Matcher<std::string>& hint = ::testing::_);

// The same, and nothing else on stderr.
::testing::Matcher<const Outcome&> Refuses(int code, const ::testing::Matcher<std::string>& message,
                                           const ::testing::Matcher<std::string>& hint = ::testing::_);

}  // namespace sluice::test
