#pragma once
// A device for LibTorch that is made of host memory and does everything as late as it may: what is put on a
// stream takes place only when somebody waits for it, on the waiting thread.  A missing wait shows as bytes
// that are not there.  Of type PrivateUse1, two of them; one thread.

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::test {

class LateDevice {
 public:
  // One at a time: counts and faults begin anew.
  LateDevice();
  ~LateDevice();
  LateDevice(const LateDevice&) = delete;
  LateDevice& operator=(const LateDevice&) = delete;

  static c10::Device device(int index = 0);

  // Puts work on the device's default stream, where models are made.
  static void begin_on_default_stream(std::function<void()> work, int index = 0);
  // What was put on it takes place now.
  static void finish_default_stream(int index = 0);

  // The nth copy from now on fails, counted from 1.
  static void fail_nth_copy(int n);
  static int copies();  // begun until now

  // The bytes that a contiguous tensor has on the device at this moment, whatever is still to come.
  static std::vector<std::byte> bytes_now(const at::Tensor& tensor);
};

}  // namespace sluice::test
