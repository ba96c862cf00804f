#include "base/log.h"

#include <mutex>

namespace sluice {
namespace {

std::mutex sink_mutex;
LogSink sink;  // guarded by sink_mutex

void say(LogLevel level, const std::string& line) {
  std::lock_guard lock(sink_mutex);
  if (sink) sink(level, line);
}

}  // namespace

void set_log_sink(LogSink new_sink) {
  std::lock_guard lock(sink_mutex);
  sink = std::move(new_sink);
}

void log_info(const std::string& line) {
  say(LogLevel::info, line);
}
void log_warning(const std::string& line) {
  say(LogLevel::warning, line);
}

}  // namespace sluice
