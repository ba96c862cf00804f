#include "weights/device_errors.h"

#include <sluice/error.h>

#include <fmt/format.h>

namespace sluice::weights {

std::string first_line(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  return std::string(text.substr(0, text.find('\n')));
}

void with_device_errors(c10::Device device, std::string_view what, const std::function<void()>& work) {
  try {
    work();
  } catch (const c10::OutOfMemoryError& error) {
    throw Error(ErrorKind::does_not_fit,
                fmt::format("{}: cannot {}: {}", device.str(), what, first_line(error)),
                "free memory of the device, or load fewer tensors");
  } catch (const c10::Error& error) {
    throw Error(ErrorKind::io, fmt::format("{}: cannot {}: {}", device.str(), what, first_line(error)),
                "run again; what is on the device is incomplete");
  }
}

}  // namespace sluice::weights
