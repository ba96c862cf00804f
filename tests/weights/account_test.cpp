#include "weights/component.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/error.h>

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <deque>

namespace sluice::weights {
namespace {

using test::SyntheticFile;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Groups of parameters that nobody fills.
class Groups {
 public:
  Groups& group() {
    groups_.push_back({"group", {}});
    return *this;
  }
  Groups& rows(const std::string& name, std::vector<std::int64_t> shape, RowRange rows = {}) {
    ParameterScope(groups_.back()).add_matrix(name, slot_, slot_, std::move(shape), rows);
    return *this;
  }
  Groups& plain(const std::string& name, std::vector<std::int64_t> shape) {
    ParameterScope(groups_.back()).add(name, slot_, std::move(shape));
    return *this;
  }
  std::vector<const ParameterGroup*> all() const {
    std::vector<const ParameterGroup*> all;
    for (const ParameterGroup& group : groups_) all.push_back(&group);
    return all;
  }

 private:
  std::deque<ParameterGroup> groups_;
  at::Tensor slot_;
};

// A matrix of 6 rows of 32 values, dense, in fp8 and in nf4.
class Account : public ::testing::Test {
 protected:
  Account()
      : file_(SyntheticFile()
                  .tensor("dense", Dtype::BF16, {6, 32})
                  .tensor("fp8", Dtype::F8_E4M3, {6, 32})
                  .tensor("fp8.scale", Dtype::F32, {})
                  .tensor("nf4", Dtype::U8, {96, 1})
                  .tensor("nf4.absmax", Dtype::F32, {3})
                  .write()) {
    const Checkpoint checkpoint = Checkpoint::open(file_.path());
    table_ = {"component", checkpoint, {}};
    for (const char* name : {"dense", "fp8", "nf4"}) table_.tensors.emplace(name, *checkpoint.find(name));
    table_.quantized["fp8"] = {QuantFormat::fp8, *checkpoint.find("fp8.scale"), {}};
    table_.quantized["nf4"] = {QuantFormat::nf4, *checkpoint.find("nf4.absmax"), {}};
  }

  Accounting account_for(const Groups& groups) const { return account(table_, groups.all()); }
  void keep_only(const std::string& name) {
    std::erase_if(table_.tensors, [&](const auto& entry) { return entry.first != name; });
    std::erase_if(table_.quantized, [&](const auto& entry) { return entry.first != name; });
  }

  test::WrittenFile file_;
  ComponentTable table_;
};

TEST_F(Account, counts_quantized_matrices_with_their_scales) {
  const Accounting accounting =
      account_for(Groups().group().rows("dense", {6, 32}).rows("fp8", {6, 32}).rows("nf4", {6, 32}));

  EXPECT_EQ(accounting.bound, 3u);
  EXPECT_EQ(accounting.bound_bytes, (384u + 192 + 4 + 96 + 12));
}

TEST_F(Account, counts_a_parameter_once_whose_rows_several_groups_take) {
  keep_only("dense");

  const Accounting accounting = account_for(Groups()
                                                .group()
                                                .rows("dense", {6, 32}, {.begin = 4, .count = 2})
                                                .group()
                                                .rows("dense", {6, 32}, {.begin = 0, .count = 4}));

  EXPECT_EQ(accounting.bound, 1u);
  EXPECT_EQ(accounting.bound_bytes, 384u);
}

TEST_F(Account, refuses_rows_that_leave_a_gap_overlap_or_lie_outside) {
  keep_only("dense");
  const std::vector<std::vector<RowRange>> wrong = {
      {{0, 3}, {4, 2}}, {{0, 4}, {3, 3}}, {{0, 6}, {2, 2}}, {{0, 4}}, {{1, 5}}, {{0, 7}}, {{0, 6}, {0, 0}}};
  for (const auto& ranges : wrong) {
    Groups groups;
    for (const RowRange& range : ranges) groups.group().rows("dense", {6, 32}, range);

    EXPECT_THAT([&] { account_for(groups); },
                ThrowsError(ErrorKind::internal, AllOf(HasSubstr("'dense'"), HasSubstr("6"))));
  }
}

TEST_F(Account, takes_rows_of_nf4_that_are_whole_blocks) {
  keep_only("nf4");

  EXPECT_NO_THROW(
      account_for(Groups().group().rows("nf4", {6, 32}, {0, 2}).group().rows("nf4", {6, 32}, {2, 4})));
}

TEST_F(Account, refuses_rows_of_nf4_that_cut_a_block) {
  keep_only("nf4");

  EXPECT_THAT(
      [&] {
        account_for(Groups().group().rows("nf4", {6, 32}, {0, 3}).group().rows("nf4", {6, 32}, {3, 3}));
      },
      ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("cross rows"), HasSubstr("nf4"))));
}

TEST_F(Account, refuses_a_quantized_tensor_where_no_scales_can_go_naming_it) {
  for (const char* name : {"fp8", "nf4"}) {
    EXPECT_THAT(
        [&] {
          Groups groups;
          groups.group();
          for (const char* other : {"dense", "fp8", "nf4"})
            other == std::string_view(name) ? groups.plain(other, {6, 32}) : groups.rows(other, {6, 32});
          account_for(groups);
        },
        ThrowsError(ErrorKind::bad_input, AllOf(HasSubstr("1 quantized"), HasSubstr(name))));
  }
}

TEST_F(Account, takes_vectors_that_were_cast_to_fp8_without_a_scale) {
  keep_only("fp8");
  table_.quantized["fp8"].scales.reset();
  table_.tensors.at("fp8").shape = {192};
  EXPECT_NO_THROW(account_for(Groups().group().plain("fp8", {192})));

  table_.tensors.at("fp8").shape = {6, 32};
  EXPECT_THAT(
      [&] {
        account_for(Groups().group().plain("fp8", {6, 32}));
      },
      ThrowsError(ErrorKind::bad_input, HasSubstr("1 quantized")));
}

TEST_F(Account, refuses_a_quantized_matrix_of_another_size) {
  for (const auto& [name, shape] : {std::pair("fp8", "[6, 32]"), {"nf4", "[96, 1]"}}) {
    const std::string which = name;
    EXPECT_THAT(
        [&] {
          Groups groups;
          groups.group();
          for (const char* other : {"dense", "fp8", "nf4"}) groups.rows(other, {6, other == which ? 34 : 32});
          account_for(groups);
        },
        ThrowsError(ErrorKind::mismatch, AllOf(HasSubstr(which + " is " + shape), HasSubstr("[6, 34]"))));
  }
}

TEST_F(Account, refuses_eight_bit_floats_that_nobody_recognised) {
  table_.quantized.erase("fp8");

  EXPECT_THAT(
      [&] {
        account_for(Groups().group().rows("dense", {6, 32}).rows("fp8", {6, 32}).rows("nf4", {6, 32}));
      },
      ThrowsError(ErrorKind::bad_input, HasSubstr("cannot be computed with: fp8 (F8_E4M3)")));
}

}  // namespace
}  // namespace sluice::weights
