// Tensors on a device, without one: see late_device.h.
#include "base/log.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/device_sink.h"
#include "weights/late_device.h"
#include "weights/load_model.h"
#include "weights/load_tensors.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <cstring>

namespace sluice::weights {
namespace {

using test::LateDevice;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

at::Tensor on_device(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat, int index = 0) {
  return at::empty(shape, at::TensorOptions().dtype(dtype).device(LateDevice::device(index)));
}

// Without waiting for anything: what has arrived is there.
bool holds_now(const at::Tensor& tensor, const at::Tensor& value) {
  const auto bytes = LateDevice::bytes_now(tensor);
  const at::Tensor wanted = value.contiguous();
  return bytes.size() == wanted.nbytes() &&
         (bytes.empty() || std::memcmp(bytes.data(), wanted.const_data_ptr(), bytes.size()) == 0);
}

class Device : public ::testing::Test {
 protected:
  LoadPlan plan_of(const NamedTensors& tensors) {
    const auto path = folder_ / "model.safetensors";
    std::filesystem::remove(path);
    write_tensors(path, tensors);
    return plan_load(Checkpoint::open(path));
  }

  LateDevice device_;
  TemporaryFolder folder_;
};

TEST_F(Device, has_every_byte_of_a_model_when_the_load_returns) {
  // More than all slots hold together, in tensors larger and smaller than one of them.
  const at::Tensor large = at::rand({5, 1 << 20}), small = at::rand({7}).to(at::kBFloat16);
  const LoadPlan plan = plan_of(
      {{"large", large}, {"scalar", at::scalar_tensor(2.5)}, {"small", small}, {"empty", at::empty({0})}});
  const NamedTensors parameters = {{"large", on_device({5, 1 << 20})},
                                   {"scalar", on_device({})},
                                   {"small", on_device({7}, at::kBFloat16)},
                                   {"empty", on_device({0})}};

  load_into_model(plan, parameters);

  EXPECT_TRUE(holds_now(parameters[0].second, large));
  EXPECT_TRUE(holds_now(parameters[1].second, at::scalar_tensor(2.5)));
  EXPECT_TRUE(holds_now(parameters[2].second, small));
}

TEST_F(Device, gets_bytes_behind_what_was_begun_on_its_tensors_before) {
  const at::Tensor value = at::rand({1000});
  const LoadPlan plan = plan_of({{"a", value}});
  const at::Tensor parameter = on_device({1000});
  LateDevice::begin_on_default_stream([&] { std::memset(parameter.data_ptr(), 0xee, parameter.nbytes()); });

  load_into_model(plan, NamedTensors{{"a", parameter}});
  LateDevice::finish_default_stream();

  EXPECT_TRUE(holds_now(parameter, value));
}

TEST_F(Device, parameters_may_lie_on_several_devices_and_on_the_host) {
  const at::Tensor a = at::rand({100}), b = at::rand({200}), c = at::rand({300});
  const LoadPlan plan = plan_of({{"a", a}, {"b", b}, {"c", c}});
  const NamedTensors parameters = {
      {"a", on_device({100})}, {"b", at::zeros({200})}, {"c", on_device({300}, at::kFloat, 1)}};

  load_into_model(plan, parameters);

  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(holds_now(parameters[i].second, std::vector{a, b, c}[i])) << parameters[i].first;
}

TEST_F(Device, parameters_may_require_gradients_and_lie_in_strides) {
  const at::Tensor a = at::rand({4, 6}), b = at::rand({5});
  const LoadPlan plan = plan_of({{"a", a}, {"b", b}});
  c10::AutoGradMode on(true);
  const at::Tensor memory = on_device({6, 4});
  const at::Tensor transposed = memory.t(), plain = on_device({5}).requires_grad_();

  load_into_model(plan, NamedTensors{{"a", transposed}, {"b", plain}});

  EXPECT_TRUE(holds_now(memory, a.t()));
  EXPECT_TRUE(holds_now(plain, b));
  EXPECT_TRUE(plain.is_leaf());
}

TEST_F(Device, parameters_that_are_tied_are_compared_there) {
  const at::Tensor value = at::rand({300, 200}), other = value.clone();
  other[299][199] += 1;
  const at::Tensor shared = on_device({300, 200});
  const NamedTensors parameters = {{"embedding", shared}, {"head", shared}};

  load_into_model(plan_of({{"embedding", value}, {"head", value}}), parameters);
  EXPECT_TRUE(holds_now(shared, value));

  EXPECT_THAT(
      [&] {
        load_into_model(plan_of({{"embedding", value}, {"head", other}}), parameters);
      },
      ThrowsError(ErrorKind::mismatch, HasSubstr("'embedding' and 'head' differ")));
}

TEST_F(Device, that_fails_ends_the_load_with_its_own_words) {
  const LoadPlan plan = plan_of({{"a", at::rand({20, 1 << 20})}});
  const at::Tensor parameter = on_device({20, 1 << 20});
  LateDevice::fail_nth_copy(6);

  EXPECT_THAT(
      [&] {
        load_into_model(plan, NamedTensors{{"a", parameter}});
      },
      ThrowsError(ErrorKind::io, AllOf(HasSubstr("privateuseone:0: cannot copy to the device: "),
                                       HasSubstr("the late device is lost"), Not(HasSubstr("\n")))));
}

TEST_F(Device, without_pinned_memory_is_served_from_plain_memory_with_one_warning) {
  const LoadPlan plan = plan_of({{"a", at::rand({4})}, {"b", at::rand({4})}});

  const LoadReport report = load_into_model(plan, NamedTensors{{"a", on_device({4})}, {"b", on_device({4})}});

  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], AllOf(HasSubstr("privateuseone:0"), HasSubstr("not pinned")));
}

TEST_F(Device, takes_a_dictionary) {
  const at::Tensor a = at::rand({100}), b = at::rand({2, 3}).to(at::kHalf);

  const TensorMap tensors = load_tensors(plan_of({{"a", a}, {"b", b}}), {.device = LateDevice::device(1)});

  EXPECT_EQ(tensors.at("a").device(), LateDevice::device(1));
  EXPECT_TRUE(holds_now(tensors.at("a"), a));
  EXPECT_TRUE(holds_now(tensors.at("b"), b));
}

TEST_F(Device, without_room_leaves_tensors_in_host_memory_with_one_warning) {
  const at::Tensor a = at::rand({1000}), b = at::rand({10}), c = at::rand({2000});
  const LoadPlan plan = plan_of({{"a", a}, {"b", b}, {"c", c}});
  Bytes left = 100;
  auto allocate = [&](const std::vector<std::int64_t>& shape, at::ScalarType dtype, c10::Device device) {
    const auto size = static_cast<Bytes>(c10::multiply_integers(shape)) * c10::elementSize(dtype);
    if (size > left) throw c10::OutOfMemoryError({__func__, __FILE__, __LINE__}, "no room");
    left -= size;
    return at::empty(shape, at::TensorOptions().dtype(dtype).device(device));
  };
  LoadReport report;

  const TensorMap tensors =
      load_tensors(plan, {.device = LateDevice::device(), .allocate = allocate}, {}, &report);

  EXPECT_TRUE(tensors.at("a").is_cpu());
  EXPECT_EQ(tensors.at("b").device(), LateDevice::device());
  EXPECT_TRUE(tensors.at("c").is_cpu());
  for (const auto& [name, value] : NamedTensors{{"a", a}, {"b", b}, {"c", c}})
    EXPECT_TRUE(holds_now(tensors.at(name), value)) << name;
  EXPECT_THAT(report.warnings,
              Contains("privateuseone:0: no room for 2 of 3 tensors (11.7 KiB): they stay in host memory"));
}

TEST_F(Device, that_fails_to_allocate_otherwise_is_an_error) {
  const LoadPlan plan = plan_of({{"a", at::rand({10})}});
  auto allocate = [](const std::vector<std::int64_t>&, at::ScalarType, c10::Device) -> at::Tensor {
    TORCH_CHECK(false, "the driver is too old");
  };

  EXPECT_THAT(
      [&] { load_tensors(plan, {.device = LateDevice::device(), .allocate = allocate}); },
      ThrowsError(ErrorKind::io, HasSubstr("privateuseone:0: cannot allocate: the driver is too old")));
}

TEST_F(Device, that_this_program_cannot_reach_is_refused) {
  const LoadPlan plan = plan_of({{"a", at::rand({10})}});

  EXPECT_THAT([&] { load_tensors(plan, {.device = c10::Device(at::kCUDA, 0)}); },
              ThrowsError(ErrorKind::io, HasSubstr("cuda:0: cannot allocate")));
}

}  // namespace
}  // namespace sluice::weights
