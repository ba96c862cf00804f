#include "bytes/format/header.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/checkpoint.h>

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace sluice {
namespace {

using test::SyntheticFile;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::string_view_literals;

// Every refusal names the file: the matcher adds that to what a case expects.
void expect_refused(const SyntheticFile& file, ::testing::Matcher<std::string> message) {
  test::WrittenFile written = file.write("bad.safetensors");

  EXPECT_THAT([&] { Checkpoint::open(written.path()); },
              ThrowsError(ErrorKind::corrupt_file, AllOf(HasSubstr("bad.safetensors: "), message),
                          ::testing::Not(::testing::IsEmpty())));
}

SyntheticFile one_tensor() {
  return SyntheticFile().tensor("a", Dtype::F32, {2, 3});
}
SyntheticFile two_tensors() {
  return SyntheticFile().tensor("a", Dtype::BF16, {4}).tensor("b", Dtype::BF16, {4});
}

TEST(Header, shorter_than_its_length_field_is_truncated) {
  expect_refused(SyntheticFile().cut_last(7), HasSubstr("file has 3 bytes, the header's length needs 8"));
}

TEST(Header, longer_than_the_file_tells_both_sizes_and_what_is_missing) {
  expect_refused(SyntheticFile().header_length(1000),
                 HasSubstr("file has 10 bytes, its header alone needs 1008: 998 bytes"));
}

TEST(Header, above_100_MB_is_refused_by_its_length) {
  expect_refused(one_tensor().header_length(100'000'001), HasSubstr("header length 100000001 exceeds"));
}

TEST(Header, whose_length_wraps_around_is_refused_by_its_length) {
  expect_refused(one_tensor().header_length(~std::uint64_t{0}),
                 HasSubstr("header length 18446744073709551615 exceeds"));
  expect_refused(one_tensor().header_length(~std::uint64_t{0} - 7), HasSubstr("exceeds"));
}

TEST(Header, that_is_not_json_is_refused_with_the_place) {
  expect_refused(SyntheticFile().header("{\"a\":}"), HasSubstr("header is not valid JSON at byte 6"));
  expect_refused(SyntheticFile().header("{\"__metadata__\":{}"), HasSubstr("not valid JSON"));
  expect_refused(SyntheticFile().header("{'a':{}}"), HasSubstr("not valid JSON"));
  expect_refused(SyntheticFile().header("{\"__metadata__\":{},}"), HasSubstr("not valid JSON"));
  expect_refused(SyntheticFile().header("{/**/}"), HasSubstr("not valid JSON"));
}

TEST(Header, begins_with_a_brace) {
  expect_refused(SyntheticFile().header(""), HasSubstr("does not begin with '{'"));
  expect_refused(SyntheticFile().header(" {}"), HasSubstr("does not begin with '{'"));
  expect_refused(SyntheticFile().header("[]"), HasSubstr("does not begin with '{'"));
  expect_refused(SyntheticFile().header("\xef\xbb\xbf{}"), HasSubstr("does not begin with '{'"));
}

TEST(Header, ends_with_spaces_only) {
  EXPECT_NO_THROW(Checkpoint::open(SyntheticFile().pad_header(5).write().path()));
  expect_refused(SyntheticFile().header("{} x"), HasSubstr("not valid JSON"));
  expect_refused(SyntheticFile().header("{}\n"), HasSubstr("bytes after its object"));
  expect_refused(SyntheticFile().header(std::string("{}\0 ", 4)), HasSubstr("byte 2 is a NUL"));
  expect_refused(SyntheticFile().header("{}{}"), HasSubstr("not valid JSON"));
}

TEST(Header, that_is_not_utf8_is_refused_with_the_place) {
  expect_refused(SyntheticFile().header("{\"\xff\":{}}"), HasSubstr("header is not valid UTF-8 at byte 3"));
  expect_refused(SyntheticFile().header("{\"\xc0\xaf\":{}}"), HasSubstr("UTF-8"));          // overlong
  expect_refused(SyntheticFile().header("{\"\xed\xa0\x80\":{}}"), HasSubstr("UTF-8"));      // surrogate
  expect_refused(SyntheticFile().header("{\"\xf4\x90\x80\x80\":{}}"), HasSubstr("UTF-8"));  // above U+10FFFF
  expect_refused(SyntheticFile().header("{\"\\ud800\":{}}"), HasSubstr("not valid JSON"));
}

TEST(Header, nested_too_deep_is_refused_without_recursion) {
  std::string deep(5'000'000, '[');
  expect_refused(one_tensor().with_field("a", "extra", deep), HasSubstr("nested deeper than 32 levels"));
}

TEST(Header, with_a_name_twice_is_refused_naming_it) {
  SyntheticFile file =
      SyntheticFile().tensor("a", Dtype::F32, {1}).tensor("b", Dtype::F32, {1}).tensor("a", Dtype::F32, {1});

  expect_refused(file, HasSubstr("tensor 'a' appears twice"));
}

TEST(Header, with_an_escaped_twin_of_a_name_is_refused_too) {
  SyntheticFile file = SyntheticFile().tensor("a", Dtype::F32, {1}).tensor("\\u0061", Dtype::F32, {1});

  expect_refused(file, HasSubstr("tensor 'a' appears twice"));
}

TEST(Header, with_a_field_twice_is_refused) {
  expect_refused(
      SyntheticFile().header(R"({"a":{"dtype":"U8","dtype":"U8","shape":[0],"data_offsets":[0,0]}})"),
      HasSubstr("tensor 'a' has dtype twice"));
}

TEST(Header, with_a_nul_in_a_name_is_refused_showing_it) {
  expect_refused(SyntheticFile().tensor("a\\u0000b", Dtype::F32, {1}),
                 HasSubstr("name 'a\\x00b' holds a NUL"));
}

TEST(Entry, is_an_object_with_dtype_shape_and_offsets) {
  expect_refused(SyntheticFile().header(R"({"a":5})"),
                 HasSubstr("the entry of tensor 'a' is 5, not an object"));
  expect_refused(SyntheticFile().header(R"({"a":[]})"), HasSubstr("the entry of tensor 'a' is a list"));
  expect_refused(SyntheticFile().header(R"({"a":null})"), HasSubstr("the entry of tensor 'a' is null"));
  expect_refused(one_tensor().with_field("a", "dtype", ""), HasSubstr("tensor 'a' has no dtype"));
  expect_refused(one_tensor().with_field("a", "shape", ""), HasSubstr("tensor 'a' has no shape"));
  expect_refused(one_tensor().with_field("a", "data_offsets", ""),
                 HasSubstr("tensor 'a' has no data_offsets"));
}

TEST(Entry, may_have_other_keys_of_any_kind) {
  for (const char* json :
       {"1", "-2.5", "null", "\"x\"", "[1,[2,{\"shape\":[9]}]]", "{\"dtype\":{\"dtype\":3}}"}) {
    Checkpoint checkpoint = Checkpoint::open(one_tensor().with_field("a", "extra", json).write().path());

    EXPECT_EQ(format_shape(checkpoint.tensors().at(0).shape), "[2, 3]") << json;
  }
}

TEST(Entry, with_an_unknown_dtype_is_refused_naming_it) {
  expect_refused(one_tensor().with_field("a", "dtype", "\"F31\""),
                 HasSubstr("tensor 'a' has the unknown dtype 'F31'"));
  expect_refused(one_tensor().with_field("a", "dtype", "\"\""), HasSubstr("unknown dtype ''"));
  expect_refused(one_tensor().with_field("a", "dtype", "7"), HasSubstr("tensor 'a' has 7 as dtype"));
}

TEST(Entry, has_plain_whole_numbers_as_shape) {
  for (const char* number :
       {"-2", "-0", "2.0", "2e0", "true", "null", "\"2\"", "99999999999999999999999", "[2]", "{}"}) {
    expect_refused(one_tensor().with_field("a", "shape", fmt::format("[{},3]", number)),
                   HasSubstr("in its shape, where whole numbers from 0 belong"));
  }
  expect_refused(one_tensor().with_field("a", "shape", "6"), HasSubstr("tensor 'a' has 6 in its shape"));
  expect_refused(one_tensor().with_field("a", "shape", "[9223372036854775808]"),
                 HasSubstr("exceeds 63 bits"));
}

TEST(Entry, has_two_plain_whole_numbers_as_offsets) {
  expect_refused(one_tensor().with_field("a", "data_offsets", "[0,24,0]"),
                 HasSubstr("3 data_offsets, not 2"));
  expect_refused(one_tensor().with_field("a", "data_offsets", "[24]"), HasSubstr("1 data_offsets, not 2"));
  expect_refused(one_tensor().with_field("a", "data_offsets", "[0,-24]"),
                 HasSubstr("-24 in its data_offsets"));
  expect_refused(one_tensor().with_field("a", "data_offsets", "\"0,24\""),
                 HasSubstr("'0,24' in its data_offsets"));
}

TEST(Entry, whose_size_overflows_is_refused_with_its_shape) {
  expect_refused(one_tensor().with_field("a", "shape", "[4294967296,4294967296,4294967296]"),
                 HasSubstr("F32 [4294967296, 4294967296, 4294967296] has no size"));
  // 2^62 elements of 4 bytes wrap to 0 bytes.
  expect_refused(one_tensor().with_field("a", "shape", "[4611686018427387904]").at_offset("a", 0),
                 HasSubstr("has no size"));
}

TEST(Entry, whose_range_does_not_hold_shape_times_dtype_is_refused_with_both_sizes) {
  expect_refused(one_tensor().with_field("a", "shape", "[2,4]"),
                 HasSubstr("F32 [2, 4] needs 32 bytes, but its data_offsets [0, 24] hold 24"));
}

TEST(Entry, with_a_million_extents_is_refused_in_a_short_message) {
  std::string ones = "1";
  for (int i = 1; i < 1'000'000; ++i) ones += ",1";
  std::string message;
  try {
    Checkpoint::open(one_tensor().with_field("a", "shape", fmt::format("[{}]", ones)).write().path());
  } catch (const Error& error) {
    message = error.what();
  }

  EXPECT_THAT(message, HasSubstr("1, 1, … 1000000 extents] needs 4 bytes"));
  EXPECT_LT(message.size(), 1000u);
}

TEST(Entry, that_begins_after_its_end_is_refused) {
  expect_refused(one_tensor().with_field("a", "data_offsets", "[24,0]"),
                 HasSubstr("begins at byte 24 after its end"));
}

TEST(Layout, with_overlapping_tensors_is_refused_naming_both) {
  expect_refused(two_tensors().at_offset("b", 2), HasSubstr("tensors 'a' and 'b' overlap"));
  expect_refused(two_tensors().at_offset("b", 0), HasSubstr("tensors 'a' and 'b' overlap"));
}

TEST(Layout, with_a_hole_is_refused_naming_what_follows) {
  expect_refused(two_tensors().at_offset("b", 10).append_data("12"),
                 HasSubstr("bytes 8 to 10 of the data, before tensor 'b', belong to no tensor"));
  expect_refused(one_tensor().at_offset("a", 4).append_data("1234"),
                 HasSubstr("bytes 0 to 4 of the data, before tensor 'a'"));
}

TEST(Layout, with_bytes_behind_the_last_tensor_is_refused) {
  expect_refused(one_tensor().append_data("xyz"), HasSubstr("the last 3 bytes belong to no tensor"));
  expect_refused(SyntheticFile().append_data("xyz"), HasSubstr("the last 3 bytes belong to no tensor"));
}

TEST(Layout, past_the_end_of_the_file_tells_both_sizes_and_what_is_missing) {
  SyntheticFile file = one_tensor();
  std::size_t whole = file.content().size();

  expect_refused(file.cut_last(10),
                 HasSubstr(fmt::format("file has {} bytes, its header needs {}: 10 bytes (10 B) are missing",
                                       whole - 10, whole)));
}

TEST(Layout, may_have_empty_tensors_at_any_boundary) {
  SyntheticFile file = SyntheticFile()
                           .tensor("empty first", Dtype::F32, {0})
                           .tensor("a", Dtype::F32, {2})
                           .tensor("empty between", Dtype::F32, {3, 0})
                           .tensor("b", Dtype::F32, {})
                           .tensor("empty last", Dtype::F32, {0});

  EXPECT_EQ(Checkpoint::open(file.write().path()).tensors().size(), 5u);
}

TEST(Layout, with_an_empty_tensor_inside_another_is_refused) {
  expect_refused(SyntheticFile().tensor("a", Dtype::F32, {2}).tensor("e", Dtype::F32, {0}).at_offset("e", 4),
                 HasSubstr("tensors 'a' and 'e' overlap"));
}

TEST(Metadata, is_an_object_of_strings) {
  expect_refused(SyntheticFile().header(R"({"__metadata__":3})"),
                 HasSubstr("__metadata__ is 3, not an object"));
  expect_refused(SyntheticFile().header(R"({"__metadata__":["a"]})"), HasSubstr("__metadata__ is a list"));
  expect_refused(SyntheticFile().header(R"({"__metadata__":{"k":1}})"),
                 HasSubstr("__metadata__ has 1 under 'k', not a string"));
  expect_refused(SyntheticFile().header(R"({"__metadata__":{"k":{"a":"b"}}})"),
                 HasSubstr("an object under 'k'"));
}

TEST(Metadata, with_a_key_twice_is_refused) {
  expect_refused(SyntheticFile().metadata("k", "1").metadata("k", "2"), HasSubstr("key 'k' twice"));
  expect_refused(SyntheticFile().header(R"({"__metadata__":{},"__metadata__":{}})"),
                 HasSubstr("appears twice"));
}

TEST(Metadata, is_no_tensor) {
  SyntheticFile file = one_tensor().metadata("config", "{\\\"a\\\": 1}");
  Checkpoint checkpoint = Checkpoint::open(file.write().path());

  EXPECT_EQ(checkpoint.tensors().size(), 1u);
  EXPECT_EQ(checkpoint.metadata().at("config"), "{\"a\": 1}");
}

TEST(Header, of_damaged_bytes_is_a_table_that_tiles_or_an_error) {
  std::string good = SyntheticFile()
                         .metadata("k", "v")
                         .tensor("a", Dtype::F32, {2, 3})
                         .tensor("b", Dtype::U8, {5})
                         .pad_header(3)
                         .header_text();
  constexpr Bytes kData = 29;
  unsigned seed = std::random_device()();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937 random(seed);
  constexpr std::string_view alphabet = "{}[]\":,0123456789-.eE \0\xff\\uab"sv;

  for (int round = 0; round < 20'000; ++round) {
    std::string damaged = good;
    for (unsigned n = 1 + random() % 3; n > 0; --n)
      damaged[random() % damaged.size()] = alphabet[random() % alphabet.size()];
    try {
      bytes::HeaderTable table = bytes::parse_header(damaged, "f");
      bytes::check_layout(table.tensors, 100, 100 + kData, "f");
      Bytes sum = 0;
      for (const TensorInfo& tensor : table.tensors) sum += tensor.size;
      ASSERT_EQ(sum, kData) << damaged;
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), ::testing::StartsWith("f: ")) << damaged;
    }
  }
}

}  // namespace
}  // namespace sluice
