#pragma once
// The one error type of sluice: what went wrong and where, and what to do about it.
// It is thrown at the place that knows and caught in the front (or where it can be mended).  The kind decides
// the exit code and, in the server, the HTTP status; both come from one table (error_kind_info).

#include <stdexcept>
#include <string>
#include <string_view>

namespace sluice {

enum class ErrorKind {
  internal,      // a bug of sluice
  usage,         // a flag or value that cannot be right
  bad_input,     // a file that is missing, is something else, or does not fit its own rules
  corrupt_file,  // a file that is damaged: truncated, overlapping tensors, …
  mismatch,      // files that are fine each but do not belong together
  does_not_fit,  // memory or disk space
  io,            // a device or system call failed while running
  non_finite,    // NaN or infinity where numbers are computed
  interrupted,   // asked to stop
};

struct ErrorKindInfo {
  std::string_view name;  // as in JSON: {"error":{"kind": name, …}}
  int exit_code;          // 0 to 130, see `sluice --help`
};

ErrorKindInfo error_kind_info(ErrorKind kind);

class Error : public std::runtime_error {
 public:
  // message: what and where with the numbers; hint: the remedy.  Lower case, no full stop.
  Error(ErrorKind kind, const std::string& message, std::string hint = {})
      : std::runtime_error(message), kind_(kind), hint_(std::move(hint)) {}

  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

}  // namespace sluice
