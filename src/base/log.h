#pragma once
// Where the library says things that are no errors: one sink, set by the front; silent until then.
// Safe to call from any thread; a line is handed on whole.

#include <functional>
#include <string>

namespace sluice {

enum class LogLevel { info, warning };  // info: what `auto` chose and why, shown at -v

using LogSink = std::function<void(LogLevel, const std::string&)>;

void set_log_sink(LogSink sink);
void log_info(const std::string& line);
void log_warning(const std::string& line);

}  // namespace sluice
