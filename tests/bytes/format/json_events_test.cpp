#include "bytes/format/json_events.h"

#include "support/throws_error.h"

#include <gmock/gmock.h>

#include <string>

namespace sluice::bytes {
namespace {

using test::ThrowsError;
using ::testing::HasSubstr;

TEST(Json, that_is_good_passes_its_check_and_other_text_is_refused_with_the_place) {
  EXPECT_NO_THROW(check_json(R"({"a": [1, -2.5, null, "x"]})", "f"));
  EXPECT_THAT([] { check_json("[1,]", "f"); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("f is not valid JSON at byte 4")));
}

TEST(Json, container_is_an_object_or_list_of_bearable_depth) {
  EXPECT_TRUE(is_json_container("{}"));
  EXPECT_TRUE(is_json_container(std::string(32, '[') + std::string(32, ']')));
  for (const std::string& text : {std::string("1"), std::string("\"a\""), std::string("{'a': 1}"),
                                  std::string(33, '[') + std::string(33, ']')}) {
    EXPECT_FALSE(is_json_container(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::bytes
