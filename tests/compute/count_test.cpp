// Several clips from one reading of the weights: each is the clip of its own seed.
#include "compute/given_world.h"

#include <sluice/units.h>

#include <gmock/gmock.h>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class Count : public ::testing::Test {
 protected:
  Outcome clip(const std::string& name, const Arguments& more) {
    return run(
        short_clip(with({"-o", folder_ / (name + ".mp4"), "--wav", folder_ / (name + ".wav"), "--latents",
                         folder_ / (name + ".latents"), "--report", folder_ / (name + ".report")},
                        more)));
  }
  // Files of the clip with that seed among several, against those of a run of its own.
  void expect_single(const std::string& several, const std::string& seed, const Arguments& more) {
    ASSERT_THAT(clip("single" + seed, with(more, {"--seed", seed})), Succeeds());
    for (const char* ending : {".mp4", ".wav", ".latents"})
      EXPECT_TRUE(
          same_bytes(folder_ / (several + "-" + seed + ending), folder_ / ("single" + seed + ending)));
  }
  Bytes bytes_read(const std::string& name, const std::string& phase) const {
    Bytes bytes = 0;
    const json report = read_json(folder_ / (name + ".report"));
    for (const json& row : report.at("phases"))
      if (row.at("name") == phase) bytes += row.at("bytes_read").get<Bytes>();
    return bytes;
  }

  TemporaryFolder folder_;
};

TEST_F(Count, of_three_makes_three_single_runs_and_reads_the_weights_of_one) {
  const Arguments from_disk = {"--stage-from", "disk", "--read-backend", "pread"};

  ASSERT_THAT(clip("three", with(from_disk, {"--count", "3", "--seed", "5"})), Succeeds());

  for (const char* seed : {"5", "6", "7"}) expect_single("three", seed, from_disk);
  const Bytes read = bytes_read("three", "denoise");
  EXPECT_GT(read, 2 * MiB(4));  // every step anew
  EXPECT_EQ(read, bytes_read("single5", "denoise"));
  EXPECT_EQ(read_json(folder_ / "three.report").at("phases").at(1).at("planned").at("bytes_read"), read);
}

TEST_F(Count, shares_what_is_given_and_the_noise_of_steps_is_each_clips_own) {
  const Arguments given = {
      "--image", earlier_clip() / "frames/frame_00000.png", "--sampler", "res_2s", "--sigmas", "1,0.6"};

  ASSERT_THAT(clip("two", with(given, {"--count", "2", "--seed", "8"})), Succeeds());

  for (const char* seed : {"8", "9"}) expect_single("two", seed, given);
}

TEST_F(Count, works_through_both_stages) {
  const Arguments stages = {"--two-stage", "--upsampler", write_upsampler(folder_ / "upsampler.safetensors")};

  ASSERT_THAT(clip("two", with(stages, {"--count", "2", "--seed", "3"})), Succeeds());

  for (const char* seed : {"3", "4"}) expect_single("two", seed, stages);
}

TEST_F(Count, names_what_cannot_be_made_of_several) {
  EXPECT_THAT(clip("x", {"--count", "2", "--trace", folder_ / "trace"}),
              Refuses(2, HasSubstr("--trace follows one clip, and --count asks for several"),
                      HasSubstr("leave out")));
  EXPECT_THAT(clip("x", {"--count", "2", "--inject", fixture_inject()}),
              Refuses(2, HasSubstr("--inject would give every clip of --count the same noise"),
                      HasSubstr("leave out")));
  EXPECT_THAT(clip("x", {"--count", "2", "--decode-latents", earlier_clip() / "latents"}),
              Refuses(2, HasSubstr("--decode-latents gives one clip, and --count asks for several"),
                      HasSubstr("leave out")));
  EXPECT_THAT(clip("x", {"--count", "0"}), Refuses(2, HasSubstr("--count 0 is not between 1 and 64")));
  EXPECT_THAT(clip("x", {"--count", "65"}), Refuses(2, HasSubstr("--count 65 is not between 1 and 64")));
  EXPECT_THAT(folder_.names(), UnorderedElementsAre());
}

TEST_F(Count, says_which_files_were_made) {
  const Outcome outcome = run(short_clip({"-o", folder_ / "many.mp4", "--seed", "7", "--count", "2"}));

  ASSERT_THAT(outcome, Succeeds());
  EXPECT_THAT(outcome.out, HasSubstr((folder_ / "many-7.mp4").string()));
  EXPECT_THAT(outcome.out, HasSubstr((folder_ / "many-8.mp4").string()));
  EXPECT_THAT(outcome.out, ::testing::Not(HasSubstr("many.mp4")));
}

TEST_F(Count, outside_of_what_is_possible_is_refused_before_anything_is_sized_by_it) {
  for (const char* count : {"0", "-1", "65", "9223372036854775807"}) {
    EXPECT_THAT(run(short_clip({"-o", folder_ / "many.mp4", "--count", count})),
                Refuses(2, HasSubstr("is not between 1 and 64")));
  }
}

TEST_F(Count, refuses_to_replace_any_of_the_files) {
  write_file(folder_ / "x-6.mp4", "somebody's");

  EXPECT_THAT(clip("x", {"--count", "3", "--seed", "5"}),
              Refuses(2, HasSubstr("x-6.mp4: exists already"), HasSubstr("--overwrite")));
  EXPECT_EQ(file_content(folder_ / "x-6.mp4"), "somebody's");
}

}  // namespace
}  // namespace sluice::test
