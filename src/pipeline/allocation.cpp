#include "pipeline/allocation.h"

#include <sluice/error.h>
#include <sluice/units.h>

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <dnnl.hpp>

#include <charconv>
#include <exception>
#include <new>
#include <optional>
#include <string>

namespace sluice::pipeline {
namespace {

constexpr std::string_view kRemedy =
    "ask for a smaller clip, or free memory; sluice plan shows what each phase needs";

std::string located(std::string_view phase, std::string_view message) {
  return phase.empty() ? std::string(message) : fmt::format("the phase '{}': {}", phase, message);
}

// "… you tried to allocate 1048576 bytes …" of LibTorch's CPU allocator; nothing for any other error.
std::optional<Bytes> bytes_refused(std::string_view message) {
  constexpr std::string_view kBefore = "tried to allocate ";
  const std::size_t found = message.find(kBefore);
  if (found == std::string_view::npos) return std::nullopt;
  message.remove_prefix(found + kBefore.size());
  Bytes bytes = 0;
  const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), bytes);
  return error == std::errc() ? std::optional(bytes) : std::nullopt;
}

[[noreturn]] void refused(std::string_view phase, std::optional<Bytes> bytes) {
  const std::string message =
      bytes ? fmt::format("out of memory: the system refused {} more", format_bytes(*bytes))
            : std::string("out of memory: the system refused more");
  throw Error(ErrorKind::does_not_fit, located(phase, message), std::string(kRemedy));
}

}  // namespace

void rethrow_naming_refused_memory(std::string_view phase) {
  try {
    throw;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::does_not_fit || phase.empty()) throw;
    throw Error(error.kind(), located(phase, error.what()), error.hint());
  } catch (const c10::OutOfMemoryError& error) {
    refused(phase, bytes_refused(error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const auto bytes = bytes_refused(error.what_without_backtrace());
    if (!bytes) throw;
    refused(phase, bytes);
  } catch (const dnnl::error& error) {
    if (error.status != dnnl_out_of_memory) throw;
    refused(phase, std::nullopt);
  } catch (const std::bad_alloc&) {
    refused(phase, std::nullopt);
  }
}

}  // namespace sluice::pipeline
