#include "weights/load_model.h"

#include "support/faulty_syscalls.h"
#include "support/synthetic_file.h"
#include "support/throws_error.h"
#include "weights/tensor_file.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <random>

namespace sluice::weights {
namespace {

using test::FaultySyscalls;
using test::SyntheticFile;
using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

at::Tensor parameter(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
  return at::full(shape, 7, at::TensorOptions().dtype(dtype));
}

// A file with the tensors, to be loaded.
class ModelFile {
 public:
  explicit ModelFile(const NamedTensors& tensors) { write_tensors(folder_ / "model.safetensors", tensors); }
  LoadPlan plan() const { return plan_load(Checkpoint::open(folder_ / "model.safetensors")); }

 private:
  TemporaryFolder folder_;
};

TEST(LoadIntoModel, fills_parameters_in_their_own_memory) {
  const at::Tensor a = at::rand({3, 4}), b = at::rand({5}).to(at::kBFloat16);
  const ModelFile file({{"a", a}, {"b", b}});
  const at::Tensor to_a = parameter({3, 4}), to_b = parameter({5}, at::kBFloat16);
  const void* place = to_a.data_ptr();

  const LoadReport report = load_into_model(file.plan(), NamedTensors{{"b", to_b}, {"a", to_a}});

  EXPECT_TRUE(at::equal(to_a, a));
  EXPECT_TRUE(at::equal(to_b, b));
  EXPECT_EQ(to_a.data_ptr(), place);
  EXPECT_EQ(report.bytes, 58u);
}

TEST(LoadIntoModel, fills_scalars_and_tensors_without_elements) {
  const ModelFile file({{"scalar", at::scalar_tensor(2.5)}, {"empty", at::empty({0, 3})}});
  const at::Tensor scalar = parameter({}), empty = parameter({0, 3});

  load_into_model(file.plan(), NamedTensors{{"scalar", scalar}, {"empty", empty}});

  EXPECT_EQ(scalar.item<float>(), 2.5f);
}

TEST(LoadIntoModel, fills_parameters_that_are_not_contiguous) {
  const at::Tensor a = at::rand({4, 6}), b = at::rand({2, 3, 4, 4}), c = at::rand({5});
  const ModelFile file({{"a", a}, {"b", b}, {"c", c}});
  const at::Tensor frame = parameter({8, 6});
  const at::Tensor transposed = parameter({6, 4}).t();
  const at::Tensor channels_last = parameter({2, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor every_second = parameter({10}).slice(0, 0, 10, 2);

  load_into_model(file.plan(), NamedTensors{{"a", transposed}, {"b", channels_last}, {"c", every_second}});

  EXPECT_TRUE(at::equal(transposed, a));
  EXPECT_TRUE(at::equal(channels_last, b));
  EXPECT_TRUE(at::equal(every_second, c));
  EXPECT_TRUE(channels_last.is_contiguous(at::MemoryFormat::ChannelsLast));
}

TEST(LoadIntoModel, leaves_what_lies_between_strided_elements) {
  const ModelFile file({{"a", at::zeros({3})}});
  const at::Tensor memory = parameter({6});

  load_into_model(file.plan(), NamedTensors{{"a", memory.slice(0, 0, 6, 2)}});

  EXPECT_TRUE(at::equal(memory, at::tensor({0.f, 7.f, 0.f, 7.f, 0.f, 7.f})));
}

TEST(LoadIntoModel, records_nothing_for_gradients_but_tells_a_graph_that_values_changed) {
  const ModelFile file({{"a", at::ones({2})}, {"b", at::ones({2, 2})}});
  c10::AutoGradMode on(true);
  const at::Tensor a = parameter({2}).requires_grad_();
  const at::Tensor b = parameter({2, 2}).t().requires_grad_();
  const auto version = a._version();

  load_into_model(file.plan(), NamedTensors{{"a", a}, {"b", b}});

  EXPECT_TRUE(a.requires_grad() && a.is_leaf());
  EXPECT_TRUE(b.requires_grad() && b.is_leaf());
  EXPECT_GT(a._version(), version);
  EXPECT_TRUE(at::equal(b, at::ones({2, 2})));
}

TEST(LoadIntoModel, lists_everything_that_does_not_match_before_a_byte_is_written) {
  const ModelFile file({{"row", at::ones({1, 4})},
                        {"half", at::ones({2}).to(at::kHalf)},
                        {"new", at::ones({1})},
                        {"right", at::ones({3})}});
  const at::Tensor square = parameter({4, 4}), full = parameter({2}), right = parameter({3});

  EXPECT_THAT(
      [&] {
        load_into_model(
            file.plan(),
            NamedTensors{{"row", square}, {"half", full}, {"old", parameter({1})}, {"right", right}});
      },
      ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr("model.safetensors"), HasSubstr("1 missing: 'old'"),
                                             HasSubstr("1 unexpected: 'new'"),
                                             HasSubstr("'row' is [1, 4], its destination [4, 4]"),
                                             HasSubstr("'half' is F16, its destination F32"))));
  EXPECT_TRUE(at::equal(right, parameter({3})));
  EXPECT_TRUE(at::equal(square, parameter({4, 4})));
}

TEST(LoadIntoModel, leaves_out_what_the_model_does_not_have_when_it_may) {
  const ModelFile file({{"a", at::ones({2})}, {"more", at::ones({1000})}, {"none", at::empty({0})}});
  const at::Tensor a = parameter({2});

  const LoadReport report = load_into_model(file.plan(), NamedTensors{{"a", a}}, UnexpectedTensors::ignore);

  EXPECT_TRUE(at::equal(a, at::ones({2})));
  EXPECT_EQ(report.bytes, 8u);
}

TEST(LoadIntoModel, refuses_parameters_without_memory_of_their_own_naming_all) {
  const ModelFile file({{"a", at::ones({2})}});
  const NamedTensors parameters = {
      {"undefined", at::Tensor()},
      {"later", at::empty({2}, at::TensorOptions().device(at::kMeta))},
      {"spread", parameter({1}).expand({2})},
      {"complex", at::zeros({2}, at::TensorOptions().dtype(at::kComplexDouble))},
      {"sparse", at::sparse_coo_tensor({2}, at::TensorOptions().dtype(at::kFloat))},
      {"fine", parameter({2})}};

  EXPECT_THAT([&] { load_into_model(file.plan(), parameters); },
              ThrowsError(ErrorKind::usage,
                          AllOf(HasSubstr("5 of 6 parameters"), HasSubstr("'undefined' is no tensor"),
                                HasSubstr("'later' has no memory yet"), HasSubstr("'spread' is expanded"),
                                HasSubstr("'complex' is ComplexDouble"), HasSubstr("'sparse' is Sparse"),
                                Not(HasSubstr("'fine'"))),
                          HasSubstr("to_empty")));
}

TEST(Tied, parameters_need_one_tensor_between_them) {
  const at::Tensor value = at::rand({3, 2});
  const ModelFile file({{"head", value}});
  const at::Tensor shared = parameter({3, 2});

  load_into_model(file.plan(), NamedTensors{{"embedding", shared}, {"head", shared}});

  EXPECT_TRUE(at::equal(shared, value));
}

TEST(Tied, parameters_take_several_equal_tensors) {
  const at::Tensor value = at::rand({300, 200});
  const ModelFile file({{"embedding", value}, {"head", value}});
  for (const at::Tensor& shared : {parameter({300, 200}), parameter({200, 300}).t()}) {
    load_into_model(file.plan(), NamedTensors{{"embedding", shared}, {"head", shared}});

    EXPECT_TRUE(at::equal(shared, value));
  }
}

TEST(Tied, parameters_refuse_tensors_that_differ_in_any_byte) {
  const at::Tensor value = at::rand({300, 200}), other = value.clone();
  other[299][199] += 1;
  const ModelFile file({{"embedding", value}, {"head", other}});
  for (const at::Tensor& shared : {parameter({300, 200}), parameter({200, 300}).t()}) {
    EXPECT_THAT(
        [&] {
          load_into_model(file.plan(), NamedTensors{{"embedding", shared}, {"head", shared}});
        },
        ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr("'embedding' and 'head' differ"))));
  }
}

TEST(Tied, parameters_of_which_the_file_has_none_are_all_missing) {
  const ModelFile file({{"a", at::ones({2})}});
  const at::Tensor shared = parameter({3, 2});

  EXPECT_THAT(
      [&] {
        load_into_model(file.plan(),
                        NamedTensors{{"a", parameter({2})}, {"embedding", shared}, {"head", shared}});
      },
      ThrowsError(ErrorKind::mismatch, HasSubstr("2 missing: 'embedding', 'head'")));
}

TEST(Tied, parameters_that_only_overlap_are_refused) {
  const ModelFile file({{"a", at::ones({4})}, {"b", at::ones({4})}});
  const at::Tensor memory = parameter({6});

  EXPECT_THAT(
      [&] {
        load_into_model(file.plan(),
                        NamedTensors{{"a", memory.narrow(0, 0, 4)}, {"b", memory.narrow(0, 2, 4)}});
      },
      ThrowsError(ErrorKind::usage, HasSubstr("'a' and 'b' overlap")));
  EXPECT_TRUE(at::equal(memory, parameter({6})));
}

TEST(LoadIntoModel, takes_parts_of_one_memory_that_lie_beside_each_other) {
  const at::Tensor q = at::rand({2, 3}), k = at::rand({2, 3});
  const ModelFile file({{"q", q}, {"k", k}});
  const at::Tensor fused = parameter({4, 3});

  load_into_model(file.plan(), NamedTensors{{"q", fused.narrow(0, 0, 2)}, {"k", fused.narrow(0, 2, 2)}});

  EXPECT_TRUE(at::equal(fused, at::cat({q, k})));
}

class Stopper final : public Progress {
 public:
  explicit Stopper(CancelToken& cancel) : cancel_(cancel) {}
  void at(std::string_view, std::int64_t done, std::int64_t, std::string_view) override {
    if (done > 0) cancel_.cancel();
  }

 private:
  CancelToken& cancel_;
};

TEST(LoadIntoModel, stops_when_it_is_cancelled_and_can_be_called_again) {
  const at::Tensor value = at::rand({3, 1 << 20});
  const ModelFile file({{"a", value}});
  const at::Tensor a = parameter({3, 1 << 20});
  CancelToken cancel;
  Stopper stopper(cancel);

  EXPECT_THAT(
      [&] {
        load_into_model(file.plan(), NamedTensors{{"a", a}}, UnexpectedTensors::refuse, {.chunk = MiB(1)},
                        &stopper, &cancel);
      },
      ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
  load_into_model(file.plan(), NamedTensors{{"a", a}});

  EXPECT_TRUE(at::equal(a, value));
}

TEST(LoadIntoModel, names_file_and_tensor_of_a_read_that_fails) {
  const ModelFile file({{"a", at::rand({10})}, {"b", at::rand({3, 1 << 20})}});
  const LoadPlan plan = file.plan();
  auto load = [&] {
    load_into_model(plan, NamedTensors{{"a", parameter({10})}, {"b", parameter({3, 1 << 20})}},
                    UnexpectedTensors::refuse,
                    {.backend = ReadBackend::pread, .threads = 1, .chunk = MiB(1)});
  };
  int calls = 0;
  {
    FaultySyscalls counting;
    load();
    calls = counting.read_calls();
  }
  FaultySyscalls faults;
  faults.fail_nth_read(calls, EIO);

  EXPECT_THAT(load,
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("model.safetensors"), HasSubstr("tensor 'b'"))));
}

TEST(LoadIntoModel, gives_the_same_bytes_with_every_backend_to_any_kind_of_parameter) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  NamedTensors tensors;
  for (int i = 0; i < 30; ++i) {
    const std::int64_t rows = random() % 300, columns = 1 + random() % 400;
    tensors.emplace_back(fmt::format("t{}", i), at::randint(0, 256, {rows, columns}, at::kByte));
  }
  const ModelFile file(tensors);

  for (ReadBackend backend :
       {ReadBackend::automatic, ReadBackend::mmap, ReadBackend::pread, ReadBackend::uring}) {
    NamedTensors parameters;
    for (const auto& [name, tensor] : tensors) {
      const at::Tensor whole = at::zeros({tensor.size(1), tensor.size(0)}, at::kByte);
      parameters.emplace_back(name, random() % 3 == 0 ? whole.t() : at::zeros_like(tensor));
    }
    load_into_model(file.plan(), parameters, UnexpectedTensors::refuse, {.backend = backend});

    for (std::size_t i = 0; i < tensors.size(); ++i)
      ASSERT_TRUE(at::equal(parameters[i].second, tensors[i].second))
          << to_string(backend) << tensors[i].first;
  }
}

}  // namespace
}  // namespace sluice::weights
