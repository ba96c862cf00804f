#pragma once
// Where a load's bytes become tensors, wherever those lie: contiguous tensors of the host are read in place,
// those of a device are copied to it through a ring of pinned slots, and those that do not lie in one piece
// are put together first, one at a time.  Tensors may require gradients; nothing is recorded.
//
// Used by the thread that loads.

#include "weights/device_copy.h"
#include "weights/device_ring/device_ring.h"

#include <sluice/load.h>

#include <map>
#include <memory>
#include <optional>

namespace sluice::weights {

// The slots of one device, all together; the rest of the way is DeviceRing's.  4 MiB: copies of 1 MiB and
// more come close to what a bus gives; two slots would do if host and device were equally fast.
inline constexpr std::size_t kDeviceSlots = 4;
inline constexpr Bytes kDeviceSlot = MiB(4);

class DeviceSink final : public TensorSink {
 public:
  struct Options {
    bool fresh = false;  // host tensors have never been written to
    Bytes slot = kDeviceSlot;
  };

  // `tensors`, by target: of its dtype and shape, strided, with memory of their own; undefined for targets
  // that do not come.  Targets that share one tensor must hold the same bytes: the first is kept, what comes
  // after it is compared, Error(mismatch) with both names.
  DeviceSink(const LoadPlan& plan, std::vector<at::Tensor> tensors, Options options);
  ~DeviceSink() override;

  std::span<std::byte> destination(std::size_t target) override;
  bool destinations_are_fresh() const override { return options_.fresh; }
  void take(std::size_t target, Bytes offset, std::span<const std::byte> bytes) override;
  void complete(std::size_t target) override;

  // To be called after the load: returns when every byte is where it belongs.
  void finish();

  // What the system refused and how it was worked around.
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  struct Lane;  // to one device

  Lane& lane_to(c10::Device device);
  void take_strided(std::size_t target, Bytes offset, std::span<const std::byte> bytes);
  void compare(std::size_t target, Bytes offset, std::span<const std::byte> bytes);

  const LoadPlan plan_;
  const std::vector<at::Tensor> tensors_;
  const Options options_;
  std::vector<std::optional<std::size_t>> same_as_;  // by target: an earlier one of the same tensor
  std::vector<at::Tensor> flat_;                     // by target, of those on devices: their bytes
  at::Tensor scratch_;                               // of the tensor that is being put together
  std::size_t compared_ = 0;                         // target whose bytes are in
  at::Tensor compared_bytes_;                        // this
  std::vector<std::string> warnings_;
  std::map<std::string, std::unique_ptr<Lane>> lanes_;  // by device; last: they look at the rest
};

}  // namespace sluice::weights
