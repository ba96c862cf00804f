#include <sluice/units.h>

#include "support/throws_error.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using test::ThrowsError;
using ::testing::HasSubstr;

TEST(Bytes, are_shown_in_powers_of_1024_with_one_decimal) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(MiB(12) + KiB(300)), "12.3 MiB");
  EXPECT_EQ(format_bytes(GiB(43)), "43.0 GiB");
  EXPECT_EQ(format_bytes(GiB(2048)), "2.0 TiB");
}

TEST(Bytes, are_read_with_and_without_units) {
  EXPECT_EQ(parse_bytes("4096"), 4096u);
  EXPECT_EQ(parse_bytes("512MiB"), MiB(512));
  EXPECT_EQ(parse_bytes("300M"), MiB(300));
  EXPECT_EQ(parse_bytes("10G"), GiB(10));
  EXPECT_EQ(parse_bytes("10GB"), GiB(10));
  EXPECT_EQ(parse_bytes("1.5GiB"), GiB(1) + MiB(512));
  EXPECT_EQ(parse_bytes("2t"), GiB(2048));
  EXPECT_EQ(parse_bytes("7B"), 7u);
}

TEST(Bytes, that_are_no_size_are_refused_by_their_text) {
  for (const char* text : {"", "G", "-1", "12X", "1 G", "1GiBs", "nan", "inf", "1e400", "99999999999G"}) {
    EXPECT_THAT([&] { parse_bytes(text); },
                ThrowsError(ErrorKind::usage, HasSubstr(std::string("'") + text + "'")));
  }
}

TEST(FrameRate, is_an_exact_fraction_in_lowest_terms) {
  EXPECT_EQ(parse_frame_rate("24"), (Rational{24, 1}));
  EXPECT_EQ(parse_frame_rate("25.0"), (Rational{25, 1}));
  EXPECT_EQ(parse_frame_rate("30000/1001"), (Rational{30000, 1001}));
  EXPECT_EQ(parse_frame_rate("50/2"), (Rational{25, 1}));
  EXPECT_EQ(parse_frame_rate("12.5"), (Rational{25, 2}));
}

TEST(FrameRate, of_ntsc_decimals_is_the_exact_ntsc_rate) {
  for (const char* text : {"23.976", "23.98", "23.976024"}) {
    EXPECT_EQ(parse_frame_rate(text), (Rational{24000, 1001})) << text;
  }
  EXPECT_EQ(parse_frame_rate("29.97"), (Rational{30000, 1001}));
  EXPECT_EQ(parse_frame_rate("59.94"), (Rational{60000, 1001}));
  EXPECT_EQ(parse_frame_rate("119.88"), (Rational{120000, 1001}));
}

TEST(FrameRate, that_is_none_is_refused_by_its_text) {
  for (const char* text :
       {"", "0", "-24", "abc", "24fps", "24/0", "0/1", "1/2/3", "24.5/1", "1001", "1e9", "nan"}) {
    EXPECT_THAT([&] { parse_frame_rate(text); },
                ThrowsError(ErrorKind::usage, HasSubstr(std::string("'") + text + "'")));
  }
}

TEST(FrameRate, is_written_as_it_is_read) {
  EXPECT_EQ(to_string(Rational{24, 1}), "24");
  EXPECT_EQ(to_string(parse_frame_rate("23.976")), "24000/1001");
}

}  // namespace
}  // namespace sluice
