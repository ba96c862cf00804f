#include <sluice/error.h>

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

TEST(ErrorTable, gives_each_kind_its_exit_code) {
  EXPECT_EQ(error_kind_info(ErrorKind::internal).exit_code, 1);
  EXPECT_EQ(error_kind_info(ErrorKind::usage).exit_code, 2);
  EXPECT_EQ(error_kind_info(ErrorKind::bad_input).exit_code, 3);
  EXPECT_EQ(error_kind_info(ErrorKind::corrupt_file).exit_code, 3);
  EXPECT_EQ(error_kind_info(ErrorKind::mismatch).exit_code, 3);
  EXPECT_EQ(error_kind_info(ErrorKind::does_not_fit).exit_code, 4);
  EXPECT_EQ(error_kind_info(ErrorKind::io).exit_code, 5);
  EXPECT_EQ(error_kind_info(ErrorKind::non_finite).exit_code, 5);
  EXPECT_EQ(error_kind_info(ErrorKind::interrupted).exit_code, 130);
}

TEST(ErrorTable, gives_each_kind_a_name_of_its_own) {
  std::set<std::string_view> names;
  int kinds = static_cast<int>(ErrorKind::interrupted) + 1;
  for (int kind = 0; kind < kinds; ++kind) names.insert(error_kind_info(static_cast<ErrorKind>(kind)).name);

  EXPECT_EQ(names.size(), static_cast<std::size_t>(kinds));
}

TEST(Error, keeps_what_went_wrong_and_the_remedy_apart) {
  Error error(ErrorKind::io, "a.bin: cannot write: disk full", "free space");

  EXPECT_STREQ(error.what(), "a.bin: cannot write: disk full");
  EXPECT_EQ(error.hint(), "free space");
}

}  // namespace
}  // namespace sluice
