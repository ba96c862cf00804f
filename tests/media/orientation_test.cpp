#include "media/orientation.h"

#include <gmock/gmock.h>

#include <array>
#include <vector>

namespace sluice::media {
namespace {

using ::testing::ElementsAre;

// The picture  1 2 3  set upright; each pixel is its number three times.
//              4 5 6
std::vector<int> upright(const Orientation& orientation) {
  std::vector<std::uint8_t> to(18);
  for (int row = 0; row < 2; ++row) {
    std::vector<std::uint8_t> rgb;
    for (int column = 0; column < 3; ++column)
      rgb.insert(rgb.end(), 3, static_cast<std::uint8_t>(3 * row + column + 1));
    place_row(rgb, row, 3, 2, orientation, to);
  }
  std::vector<int> numbers;
  for (std::size_t i = 0; i < to.size(); i += 3) numbers.push_back(to[i]);
  return numbers;
}

TEST(Orientation, sets_each_of_exifs_eight_ways_upright) {
  EXPECT_THAT(upright(orientation_of_exif(1)), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(upright(orientation_of_exif(2)), ElementsAre(3, 2, 1, 6, 5, 4));
  EXPECT_THAT(upright(orientation_of_exif(3)), ElementsAre(6, 5, 4, 3, 2, 1));
  EXPECT_THAT(upright(orientation_of_exif(4)), ElementsAre(4, 5, 6, 1, 2, 3));
  EXPECT_THAT(upright(orientation_of_exif(5)), ElementsAre(1, 4, 2, 5, 3, 6));  // two columns
  EXPECT_THAT(upright(orientation_of_exif(6)), ElementsAre(4, 1, 5, 2, 6, 3));
  EXPECT_THAT(upright(orientation_of_exif(7)), ElementsAre(6, 3, 5, 2, 4, 1));
  EXPECT_THAT(upright(orientation_of_exif(8)), ElementsAre(3, 6, 2, 5, 1, 4));
}

TEST(Orientation, takes_a_number_that_exif_does_not_know_as_upright) {
  EXPECT_EQ(orientation_of_exif(0), Orientation{});
  EXPECT_EQ(orientation_of_exif(9), Orientation{});
}

TEST(Orientation, is_told_as_what_was_done) {
  EXPECT_EQ(describe(orientation_of_exif(1)), "");
  EXPECT_EQ(describe(orientation_of_exif(2)), "mirrored");
  EXPECT_EQ(describe(orientation_of_exif(3)), "turned by 180°");
  EXPECT_EQ(describe(orientation_of_exif(5)), "mirrored and turned by 270°");
  EXPECT_EQ(describe(orientation_of_exif(6)), "turned by 90°");
  EXPECT_EQ(describe(orientation_of_exif(8)), "turned by 270°");
}

TEST(Orientation, of_a_display_matrix_is_the_same_turn) {
  constexpr std::int32_t kOne = 1 << 16, kLast = 1 << 30;
  const std::array<std::int32_t, 9> phone_upright = {0, kOne, 0, -kOne, 0, 0, 0, 0, kLast};
  const std::array<std::int32_t, 9> upside_down = {-kOne, 0, 0, 0, -kOne, 0, 0, 0, kLast};
  const std::array<std::int32_t, 9> mirrored = {-kOne, 0, 0, 0, kOne, 0, 0, 0, kLast};

  EXPECT_EQ(orientation_of_matrix(phone_upright), orientation_of_exif(6));
  EXPECT_EQ(orientation_of_matrix(upside_down), orientation_of_exif(3));
  EXPECT_EQ(orientation_of_matrix(mirrored), orientation_of_exif(2));
}

}  // namespace
}  // namespace sluice::media
