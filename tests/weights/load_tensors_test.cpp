#include "weights/load_tensors.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

namespace sluice::weights {
namespace {

using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

TEST(LoadTensors, gives_every_tensor_its_dtype_shape_and_bytes) {
  const SyntheticFile file = SyntheticFile()
                                 .tensor("odd", Dtype::U8, {3})
                                 .tensor("matrix", Dtype::BF16, {2, 5})
                                 .tensor("scalar", Dtype::F32, {})
                                 .tensor("empty", Dtype::F16, {0, 4})
                                 .tensor("wide", Dtype::I64, {2});
  const TensorMap tensors = load_tensors(plan_load(Checkpoint::open(file.write().path())));

  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors.at("matrix").scalar_type(), at::kBFloat16);
  EXPECT_EQ(tensors.at("matrix").sizes(), at::IntArrayRef({2, 5}));
  EXPECT_EQ(tensors.at("scalar").dim(), 0);
  EXPECT_EQ(tensors.at("empty").sizes(), at::IntArrayRef({0, 4}));
  EXPECT_EQ(bytes_of(tensors.at("odd")), file.data().substr(0, 3));
  EXPECT_EQ(bytes_of(tensors.at("matrix")), file.data().substr(3, 20));
  EXPECT_EQ(bytes_of(tensors.at("scalar")), file.data().substr(23, 4));
  EXPECT_EQ(bytes_of(tensors.at("wide")), file.data().substr(27, 16));
}

TEST(LoadTensors, gives_addresses_that_suit_the_dtype_wherever_the_file_has_them) {
  for (std::size_t padding = 0; padding < 8; ++padding) {
    const auto written = SyntheticFile()
                             .tensor("a", Dtype::U8, {1})
                             .tensor("b", Dtype::F64, {3})
                             .tensor("c", Dtype::BF16, {3})
                             .pad_header(padding)
                             .write();

    for (const auto& [name, tensor] : load_tensors(plan_load(Checkpoint::open(written.path())))) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()) % tensor.element_size(), 0u) << name;
    }
  }
}

TEST(LoadTensors, keeps_the_memory_as_long_as_any_tensor_lives) {
  const SyntheticFile file = SyntheticFile().tensor("a", Dtype::U8, {100'000}).tensor("b", Dtype::U8, {7});
  auto slab = std::make_shared<Slab>();
  const std::weak_ptr<Slab> watched = slab;
  at::Tensor view;
  {
    const TensorMap tensors =
        load_tensors(plan_load(Checkpoint::open(file.write().path())), {.slab = std::move(slab)});
    view = tensors.at("b").narrow(0, 2, 5);
  }

  EXPECT_FALSE(watched.expired());
  EXPECT_EQ(bytes_of(view), file.data().substr(100'002, 5));
  view.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(LoadTensors, reads_into_the_memory_that_it_is_given_again) {
  const auto written = SyntheticFile().tensor("a", Dtype::U8, {1000}).write();
  const LoadPlan plan = plan_load(Checkpoint::open(written.path()));
  auto slab = std::make_shared<Slab>();

  const at::Tensor first = load_tensors(plan, {.slab = slab}).at("a");
  first.zero_();
  const at::Tensor second = load_tensors(plan, {.slab = slab}).at("a");

  EXPECT_EQ(first.data_ptr(), second.data_ptr());
  EXPECT_NE(second.sum().item<std::int64_t>(), 0);
}

TEST(LoadTensors, follows_the_plan_s_rules) {
  const auto written = SyntheticFile().tensor("x.a", Dtype::F32, {4}).tensor("y.b", Dtype::F32, {4}).write();
  const LoadPlan plan =
      plan_load(Checkpoint::open(written.path()),
                {.filter = {.include = {"x.*"}},
                 .transforms = Transforms().rename("x.*", "*").cast("a", Dtype::BF16).slice("a", 0, 1, 3)});

  const TensorMap tensors = load_tensors(plan);
  const TensorMap whole = read_tensors(written.path());

  ASSERT_EQ(tensors.size(), 1u);
  EXPECT_TRUE(at::equal(tensors.at("a"), whole.at("x.a").narrow(0, 1, 2).to(at::kBFloat16)));
}

TEST(LoadTensors, reports_what_was_read) {
  const auto written = SyntheticFile().tensor("a", Dtype::U8, {1000}).write();
  LoadReport report;

  load_tensors(plan_load(Checkpoint::open(written.path())), {}, {.backend = ReadBackend::pread}, &report);

  EXPECT_EQ(report.bytes, 1000u);
  EXPECT_THAT(report.shards.at(0).backend, HasSubstr("pread"));
}

TEST(LoadTensors, refuses_dtypes_that_libtorch_does_not_know_naming_file_and_tensor) {
  const auto written = SyntheticFile()
                           .tensor("a", Dtype::F32, {2})
                           .tensor("small", Dtype::U8, {2})
                           .with_field("small", "dtype", "\"F4\"")
                           .with_field("small", "shape", "[4]")
                           .write();
  const LoadPlan plan = plan_load(Checkpoint::open(written.path()));

  EXPECT_THAT([&] { load_tensors(plan); },
              ThrowsError(ErrorKind::bad_input,
                          AllOf(HasSubstr("model.safetensors"), HasSubstr("'small'"), HasSubstr("F4"))));
}

TEST(TensorFile, gives_back_what_was_written) {
  TemporaryFolder folder;
  const at::Tensor a = at::arange(6, at::kFloat).reshape({2, 3}), b = at::scalar_tensor(7, at::kLong);
  const at::Tensor c = at::empty({0, 2}, at::kBFloat16);

  write_tensors(folder / "f", {{"a", a.t()}, {"b", b}, {"c", c}});
  const TensorMap tensors = read_tensors(folder / "f");

  EXPECT_TRUE(at::equal(tensors.at("a"), a.t()));
  EXPECT_TRUE(at::equal(tensors.at("b"), b));
  EXPECT_EQ(tensors.at("c").sizes(), c.sizes());
}

}  // namespace
}  // namespace sluice::weights
