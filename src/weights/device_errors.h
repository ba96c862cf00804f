#pragma once
// What LibTorch says when a device fails, as our own error.

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <functional>
#include <string>
#include <string_view>

namespace sluice::weights {

// The error itself, without the advice and stacks that c10 puts on further lines.
std::string first_line(const c10::Error& error);

// Runs `work`; c10's errors become Error(does_not_fit) where memory ran out, else Error(io): "cuda:0: cannot
// <what>: …".
void with_device_errors(c10::Device device, std::string_view what, const std::function<void()>& work);

}  // namespace sluice::weights
