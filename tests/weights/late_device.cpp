#include "weights/late_device.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <utility>

namespace sluice::test {
namespace {

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex kDevices = 2;

// Work in order, and how much of it has taken place.
struct Queue {
  std::deque<std::function<void()>> work;
  std::size_t begun = 0, done = 0;

  void begin(std::function<void()> next) {
    work.push_back(std::move(next));
    ++begun;
  }
  void run_until(std::size_t count) {
    while (done < count) {
      std::function<void()> next = std::move(work.front());
      work.pop_front();
      next();
      ++done;
    }
  }
};

struct Mark {
  Queue* queue;
  std::size_t count;
};

struct World {
  std::map<std::pair<c10::DeviceIndex, c10::StreamId>, Queue> queues;
  c10::DeviceIndex current_device = 0;
  std::map<c10::DeviceIndex, c10::StreamId> current_streams;
  c10::StreamId last_stream = 0;
  int copies = 0, failing_copy = 0;
};

World& world() {
  static World world;
  return world;
}

Queue& queue_of(const c10::Stream& stream) {
  return world().queues[{stream.device_index(), stream.id()}];
}

class LateGuard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device device) const override {
    return {kType, std::exchange(world().current_device, device.index())};
  }
  c10::Device getDevice() const override { return {kType, world().current_device}; }
  void setDevice(c10::Device device) const override { world().current_device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    world().current_device = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }

  c10::Stream getStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, world().current_streams[device.index()]);
  }
  c10::Stream getDefaultStream(c10::Device device) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 0);
  }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, ++world().last_stream);
  }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    c10::StreamId& current = world().current_streams[stream.device_index()];
    return c10::Stream(c10::Stream::UNSAFE, stream.device(), std::exchange(current, stream.id()));
  }
  bool queryStream(const c10::Stream& stream) const override { return queue_of(stream).work.empty(); }
  void synchronizeStream(const c10::Stream& stream) const override {
    queue_of(stream).run_until(queue_of(stream).begun);
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Mark;
    *static_cast<Mark*>(*event) = {&queue_of(stream), queue_of(stream).begun};
  }
  void block(void* event, const c10::Stream& stream) const override {
    queue_of(stream).begin([mark = *static_cast<Mark*>(event)] { mark.queue->run_until(mark.count); });
  }
  bool queryEvent(void* event) const override {
    const auto* mark = static_cast<const Mark*>(event);
    return mark->queue->done >= mark->count;
  }
  void synchronizeEvent(void* event) const override {
    const auto* mark = static_cast<const Mark*>(event);
    mark->queue->run_until(mark->count);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    delete static_cast<Mark*>(event);
  }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, LateGuard)

class LateAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t size) override {
    void* memory = std::malloc(size == 0 ? 1 : size);
    return {memory, memory, &std::free, {kType, world().current_device}};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t size) const override {
    default_copy_data(to, from, size);
  }
};

LateAllocator allocator;
REGISTER_ALLOCATOR(kType, &allocator)

// The same memory as a tensor of the host.
at::Tensor on_host(const at::Tensor& tensor) {
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                       at::TensorOptions().dtype(tensor.scalar_type()));
}

c10::Device device_of(std::optional<c10::Device> device) {
  return {kType, device && device->has_index() ? device->index() : world().current_device};
}

at::Tensor empty(at::IntArrayRef sizes, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                 std::optional<at::Device> device, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_generic(sizes, &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> dtype,
                         std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard guard(device_of(device));
  return at::detail::empty_strided_generic(sizes, strides, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  if (++world().copies == world().failing_copy)
    TORCH_CHECK(false, "the late device is lost\nand more about it");
  const c10::Device device = from.device().type() == kType ? from.device() : to.device();
  const LateGuard guard;
  const c10::Stream stream = guard.getStream(device);
  queue_of(stream).begin([from = on_host(from), to = on_host(to)] {
    const c10::InferenceMode no_graph;
    to.copy_(from);
  });
  if (!non_blocking) guard.synchronizeStream(stream);
  return to;
}

at::Tensor as_strided(const at::Tensor& tensor, at::IntArrayRef sizes, at::IntArrayRef strides,
                      std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, sizes, strides, offset);
}
at::Tensor view(const at::Tensor& tensor, at::IntArrayRef sizes) {
  return at::native::view(tensor, sizes);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("as_strided", &as_strided);
  library.impl("view", &view);
}

c10::Stream default_stream(int index) {
  return LateGuard().getDefaultStream(LateDevice::device(index));
}

}  // namespace

LateDevice::LateDevice() {
  world() = {};
}
LateDevice::~LateDevice() {
  world() = {};
}

c10::Device LateDevice::device(int index) {
  return {kType, static_cast<c10::DeviceIndex>(index)};
}

void LateDevice::begin_on_default_stream(std::function<void()> work, int index) {
  queue_of(default_stream(index)).begin(std::move(work));
}
void LateDevice::finish_default_stream(int index) {
  LateGuard().synchronizeStream(default_stream(index));
}

void LateDevice::fail_nth_copy(int n) {
  world().failing_copy = world().copies + n;
}
int LateDevice::copies() {
  return world().copies;
}

std::vector<std::byte> LateDevice::bytes_now(const at::Tensor& tensor) {
  const auto* begin = static_cast<const std::byte*>(tensor.const_data_ptr());
  return {begin, begin + tensor.nbytes()};
}

}  // namespace sluice::test
