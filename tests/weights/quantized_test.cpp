#include "weights/quantized.h"

#include "base/nf4.h"
#include "bytes/format/writer.h"
#include "support/temporary_folder.h"
#include "support/throws_error.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstring>
#include <limits>

namespace sluice::weights {
namespace {

using test::TemporaryFolder;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Files of a few tensors, put together and opened as a component.
class Quantized : public ::testing::Test {
 public:
  Quantized& add(const std::string& name, Dtype dtype, std::vector<std::int64_t> shape,
                 std::vector<std::byte> bytes = {}) {
    Bytes size = dtype_bits(dtype) / 8;
    for (std::int64_t extent : shape) size *= static_cast<Bytes>(extent);
    bytes.resize(size);
    tensors_[name] = {{name, dtype, std::move(shape)}, std::move(bytes)};
    return *this;
  }
  Quantized& add_f32(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> values) {
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return add(name, Dtype::F32, std::move(shape), std::move(bytes));
  }
  Quantized& add_fp8(const std::string& layer, const std::string& scale = ".weight_scale",
                     float value = 0.5F) {
    return add(layer + ".weight", Dtype::F8_E4M3, {4, 64}).add_f32(layer + scale, {}, {value});
  }
  // 3 rows of 70 values: a block crosses rows and the last is short.
  Quantized& add_nf4(const std::string& layer) {
    return add(layer + ".weight", Dtype::U8, {105, 1})
        .add_f32(layer + ".weight.absmax", {4}, {1, 0, 2, 3})
        .add_f32(layer + ".weight.quant_map", {16}, {kNf4Values.begin(), kNf4Values.end()})
        .add_state(layer, R"({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [3, 70]})");
  }
  Quantized& add_state(const std::string& layer, const std::string& text) {
    std::vector<std::byte> bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return add(layer + ".weight.quant_state.bitsandbytes__nf4", Dtype::U8,
               {static_cast<std::int64_t>(text.size())}, std::move(bytes));
  }
  Quantized& without(const std::string& name) {
    tensors_.erase(name);
    return *this;
  }

  ComponentTable open() const {
    std::vector<bytes::TensorSpec> specs;
    for (const auto& [name, tensor] : tensors_) specs.push_back(tensor.first);
    bytes::SafetensorsWriter writer(folder_ / "model.safetensors", specs);
    for (const auto& [name, tensor] : tensors_) writer.append(tensor.second);
    writer.finish();
    return whole_checkpoint("transformer", Checkpoint::open(folder_ / "model.safetensors"));
  }

  void expect_refused(auto&& what) const {
    ComponentTable table = open();
    EXPECT_THAT([&] { gather_quantized(table); },
                ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("model.safetensors"), what)));
  }
  void expect_check_refuses(auto&& what) const {
    ComponentTable table = open();
    gather_quantized(table);
    EXPECT_THAT([&] { check_quantized(table); },
                ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("model.safetensors"), what)));
  }

  TemporaryFolder folder_;
  std::map<std::string, std::pair<bytes::TensorSpec, std::vector<std::byte>>> tensors_;
};

std::vector<std::string> names_of(const ComponentTable& table) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : table.tensors) names.push_back(name);
  return names;
}

TEST_F(Quantized, finds_scales_of_fp8_under_both_names_and_leaves_scales_of_inputs) {
  add_fp8("a")
      .add_fp8("b", ".scale_weight")
      .add_f32("a.input_scale", {}, {1})
      .add_f32("b.scale_input", {1}, {1});
  add("b.bias", Dtype::BF16, {4}).add("scaled_fp8", Dtype::F8_E4M3, {2});
  ComponentTable table = open();

  const auto warnings = gather_quantized(table);

  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_THAT(names_of(table), ElementsAre("a.weight", "b.bias", "b.weight"));
  EXPECT_EQ(table.quantized.size(), 2u);
  EXPECT_EQ(table.quantized.at("a.weight").scales->name, "a.weight_scale");
  EXPECT_EQ(table.quantized.at("b.weight").scales->name, "b.scale_weight");
  EXPECT_EQ(table.quantized.at("b.weight").format, QuantFormat::fp8);
  EXPECT_NO_THROW(check_quantized(table));
}

TEST_F(Quantized, reads_fp8_without_any_scale_as_scale_one_and_says_so) {
  add("a.weight", Dtype::F8_E4M3, {4, 64}).add("b.weight", Dtype::F8_E4M3, {4, 64});
  ComponentTable table = open();

  const auto warnings = gather_quantized(table);

  EXPECT_THAT(warnings,
              ElementsAre(AllOf(HasSubstr("transformer"), HasSubstr("2 fp8 tensors"), HasSubstr("scale 1"))));
  EXPECT_FALSE(table.quantized.at("a.weight").scales);
  EXPECT_NO_THROW(check_quantized(table));
}

TEST_F(Quantized, refuses_fp8_without_scale_where_others_have_one_naming_it) {
  add_fp8("a").add_fp8("b").without("b.weight_scale");

  expect_refused(AllOf(HasSubstr("'b.weight' is fp8 without a scale"), Not(HasSubstr("'a.weight'"))));
}

TEST_F(Quantized, refuses_fp8_without_scale_where_another_component_has_one) {
  add_fp8("a").add_fp8("b");
  ComponentTable table = open();
  std::erase_if(table.tensors, [](const auto& entry) { return entry.first != "a.weight"; });

  EXPECT_THAT([&] { gather_quantized(table); },
              ThrowsError(ErrorKind::bad_input, HasSubstr("'a.weight' is fp8 without a scale")));
}

TEST_F(Quantized, refuses_scales_without_their_weight_naming_them) {
  add_fp8("a").add_f32("b.weight_scale", {}, {1}).add("b.weight", Dtype::BF16, {4, 64});
  add_f32("c.scale_weight", {}, {1}).add_f32("d.input_scale", {}, {1});

  expect_refused(
      AllOf(HasSubstr("'b.weight_scale'"), HasSubstr("'c.scale_weight'"), HasSubstr("'d.input_scale'")));
}

TEST_F(Quantized, refuses_two_scales_on_one_weight) {
  add_fp8("a").add_f32("a.scale_weight", {}, {1});

  expect_refused(HasSubstr("'a.weight' has two scales"));
}

TEST_F(Quantized, refuses_scales_that_are_not_one_f32) {
  add_fp8("a").add_fp8("b").add_fp8("c");
  add("a.weight_scale", Dtype::BF16, {}).add_f32("b.weight_scale", {4}, {1, 1, 1, 1});
  add_f32("c.weight_scale", {1, 1}, {1});

  expect_refused(AllOf(HasSubstr("'a.weight_scale' is BF16 []"), HasSubstr("'b.weight_scale' is F32 [4]"),
                       HasSubstr("'c.weight_scale' is F32 [1, 1]")));
}

TEST_F(Quantized, finds_nf4_with_what_belongs_to_it) {
  add_nf4("a").add("b.weight", Dtype::BF16, {4});
  add_nf4("c").add("c.weight", Dtype::U8, {105});
  ComponentTable table = open();

  EXPECT_THAT(gather_quantized(table), IsEmpty());

  EXPECT_THAT(names_of(table), ElementsAre("a.weight", "b.weight", "c.weight"));
  EXPECT_EQ(table.quantized.size(), 2u);
  EXPECT_EQ(table.quantized.at("a.weight").format, QuantFormat::nf4);
  EXPECT_EQ(table.quantized.at("a.weight").scales->name, "a.weight.absmax");
  EXPECT_EQ(table.quantized.at("a.weight").checked.size(), 2u);
  EXPECT_NO_THROW(check_quantized(table));
}

TEST_F(Quantized, refuses_nf4_that_lacks_a_part_naming_part_and_weight) {
  for (const std::string part : {"absmax", "quant_map", "quant_state.bitsandbytes__nf4"}) {
    tensors_.clear();
    add_nf4("a").without("a.weight." + part);
    expect_refused(HasSubstr("'a.weight' has no " + part));
  }
  tensors_.clear();
  add_nf4("a").without("a.weight");
  expect_refused(HasSubstr("has no weight that it belongs to"));
}

TEST_F(Quantized, refuses_double_quantization_by_that_word) {
  add_nf4("a").add("a.weight.nested_absmax", Dtype::F32, {1});
  expect_refused(AllOf(HasSubstr("'a.weight.nested_absmax'"), HasSubstr("double quantization")));

  tensors_.clear();
  add_nf4("a").add("a.weight.absmax", Dtype::U8, {4});
  expect_refused(HasSubstr("double quantization"));
}

TEST_F(Quantized, refuses_parts_of_nf4_whose_sizes_do_not_fit) {
  add_nf4("a").add_f32("a.weight.absmax", {3}, {1, 1, 1});
  expect_refused(AllOf(HasSubstr("105 bytes"), HasSubstr("F32 [4]"), HasSubstr("F32 [3]")));

  tensors_.clear();
  add_nf4("a").add_f32("a.weight.quant_map", {15}, std::vector<float>(15));
  expect_refused(HasSubstr("quant_map that is F32 [15]"));

  tensors_.clear();
  add_nf4("a").add("a.weight", Dtype::U8, {15, 7});
  expect_refused(HasSubstr("[15, 7]"));

  tensors_.clear();
  add_nf4("a").add("a.weight", Dtype::BF16, {3, 70});
  expect_refused(HasSubstr("'a.weight' has an absmax beside it, but is BF16 [3, 70]"));
}

TEST_F(Quantized, refuses_another_type_of_four_bits) {
  add_nf4("a").add("a.weight.quant_state.bitsandbytes__fp4", Dtype::U8, {2});
  without("a.weight.quant_state.bitsandbytes__nf4");

  expect_refused(AllOf(HasSubstr("bitsandbytes__fp4"), HasSubstr("another type")));
}

TEST_F(Quantized, lists_every_problem_at_once) {
  for (int i = 0; i < 12; ++i) add(fmt::format("l{}.weight", i), Dtype::F8_E4M3, {4, 64});
  add_fp8("scaled");

  expect_refused(AllOf(HasSubstr("'l0.weight'"), HasSubstr("'l1.weight'"), HasSubstr("and 2 more")));
}

TEST_F(Quantized, is_checked_for_scales_that_are_no_positive_numbers) {
  for (float scale :
       {0.0F, -1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    tensors_.clear();
    add_fp8("a").add_fp8("b", ".weight_scale", scale);
    expect_check_refuses(AllOf(HasSubstr("'b.weight_scale' has "), Not(HasSubstr("'a.weight_scale'"))));
  }
}

TEST_F(Quantized, is_checked_for_an_absmax_that_is_negative_or_not_finite_anywhere) {
  const std::int64_t blocks = 600'000;  // more than are read at once
  const std::string state =
      fmt::format(R"({{"quant_type": "nf4", "blocksize": 64, "shape": [{}, 64]}})", blocks);
  add_nf4("a").add("a.weight", Dtype::U8, {blocks * 32, 1}).add_state("a", state);
  std::vector<float> absmax(static_cast<std::size_t>(blocks), 0.0F);
  absmax[500'000] = -1;
  add_f32("a.weight.absmax", {blocks}, absmax);

  expect_check_refuses(HasSubstr("'a.weight.absmax' has -1 at element 500000"));
}

TEST_F(Quantized, is_checked_for_the_published_code_table) {
  std::vector<float> table(kNf4Values.begin(), kNf4Values.end());
  table[3] += 1e-6F;
  add_nf4("a").add_f32("a.weight.quant_map", {16}, table);

  expect_check_refuses(HasSubstr("'a.weight.quant_map' is not the published"));
}

TEST_F(Quantized, is_checked_for_what_quant_state_says) {
  const std::pair<const char*, const char*> wrong[] = {
      {"nonsense", "no JSON object"},
      {R"({"quant_type": "fp4", "blocksize": 64, "shape": [3, 70]})", R"(quant_type "fp4")"},
      {R"({"quant_type": "nf4", "blocksize": 128, "shape": [3, 70]})", "blocksize 128"},
      {R"({"quant_type": "nf4", "blocksize": 64, "shape": [3, 71]})", "shape [3,71]"},
      {R"({"quant_type": "nf4", "blocksize": 64})", "shape null"},
      {R"({"quant_type": "nf4", "blocksize": 64, "shape": [3, 70], "nested_offset": 1})",
       "double quantization"},
  };
  for (const auto& [state, message] : wrong) {
    tensors_.clear();
    add_nf4("a").add_state("a", state);
    expect_check_refuses(AllOf(HasSubstr("'a.weight.quant_state.bitsandbytes__nf4'"), HasSubstr(message)));
  }
}

}  // namespace
}  // namespace sluice::weights
