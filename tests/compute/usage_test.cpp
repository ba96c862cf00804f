// Command lines that cannot be right: exit code 2 before any work, with what would be right.
#include "compute/world.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Row {
  const char* name;
  Arguments flags;
  std::string message;
  std::string hint;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << row.name;
}

const Row kRows[] = {
    {"width_0", {"--width", "0"}, "--width 0 is no multiple of 32", "use 32 or more"},
    {"width_below_0", {"--width", "-64"}, "--width -64 is no multiple of 32", "use 32 or more"},
    {"width_1", {"--width", "1"}, "--width 1 is no multiple of 32", "use 32"},
    {"width_770", {"--width", "770"}, "--width 770 is no multiple of 32", "use 768 or 800"},
    {"width_absurd", {"--width", "99999999999"}, "--width 99999999999 is", "use 8192 or less"},
    {"width_no_number", {"--width", "wide"}, "--width 'wide' is no number", "sluice generate --help"},
    {"width_with_an_exponent", {"--width", "1e3"}, "--width '1e3' is no number", "sluice generate --help"},
    {"height_719", {"--height", "719"}, "--height 719 is no multiple of 32", "use 704 or 736"},
    {"height_absurd", {"--height", "8224"}, "--height 8224 is", "use 8192 or less"},
    {"frames_0", {"--frames", "0"}, "--frames 0 is not 8k+1", "use 1 or more"},
    {"frames_below_0", {"--frames", "-7"}, "--frames -7 is not 8k+1", "use 1 or more"},
    {"frames_120", {"--frames", "120"}, "--frames 120 is not 8k+1", "use 113 or 121"},
    {"frames_absurd", {"--frames", "1000000001"}, "--frames 1000000001 is", "use 10001 or less"},
    {"frames_with_a_fraction", {"--frames", "9.5"}, "--frames '9.5' is no number", "sluice generate --help"},
    {"fps_0", {"--fps", "0"}, "'0' is no frame rate", "24, 23.976"},
    {"fps_below_0", {"--fps", "-24"}, "'-24' is no frame rate", "24, 23.976"},
    {"fps_absurd", {"--fps", "1e9"}, "'1e9' is no frame rate", "24, 23.976"},
    {"fps_too_fast_for_sound", {"--fps", "1000", "--frames", "1"}, "too short for sound", "more frames"},
    {"seed_below_0", {"--seed", "-1"}, "--seed '-1' is no whole number", "0 to 18446744073709551615"},
    {"seed_beyond_64_bits",
     {"--seed", "18446744073709551616"},
     "--seed '18446744073709551616'",
     "0 to 18446744073709551615"},
    {"steps_of_a_distilled_model", {"--steps", "4"}, "fixed list of 8 sigmas", "--variant dev"},
    {"steps_0", {"--variant", "dev", "--steps", "0"}, "--steps 0 is not between 1 and 1000", "use 1 or more"},
    {"steps_absurd",
     {"--variant", "dev", "--steps", "1000000000"},
     "--steps 1000000000 is not between",
     "use 1000 or less"},
    {"steps_and_sigmas", {"--steps", "8", "--sigmas", "1,0.5"}, "--steps excludes --sigmas", "--help"},
    {"sigmas_that_rise",
     {"--sigmas", "1,0.5,0.7"},
     "sigma 2 of the list is 0.7, not below 0.5",
     "high to low"},
    {"sigmas_that_are_no_numbers", {"--sigmas", "1,,2"}, "--sigmas '1,,2' is no list of numbers", "1.0,0.9"},
    {"sigmas_that_are_nan", {"--sigmas", "1,nan"}, "sigma 1 of the list is nan", "noise levels"},
    {"guidance_nan", {"--guidance", "nan"}, "--guidance nan is no finite number", "3.0"},
    {"audio_guidance_inf", {"--audio-rescale", "inf"}, "--audio-rescale inf is no finite number", "3.0"},
    {"stg_block_that_is_not_there",
     {"--variant", "dev", "--steps", "2", "--stg", "1", "--stg-blocks", "0,2"},
     "--stg-blocks names block 2, but the transformer has blocks 0 to 1",
     "--stg-blocks 1"},
    {"sound_without_a_name", {"--audio", ""}, "--audio has an empty value", "leave it out"},
    {"two_pictures_behind_one_flag", {"--image", "a.png", "b.png"}, "'b.png' is unknown", "--help"},
    {"picture_beside_given_latents",
     {"--decode-latents", "latents.safetensors", "--image", "a.png"},
     "--decode-latents denoises nothing",
     "leave them out"},
    {"threads_below_0", {"--threads", "-1"}, "--threads -1 is impossible", "between 1 and 1024"},
    {"unknown_dtype", {"--compute-dtype", "f16"}, "--compute-dtype 'f16' is unknown", "auto, f32, bf16"},
    {"unknown_backend",
     {"--read-backend", "ring"},
     "'ring' is no read backend",
     "auto, mmap, pread, direct, uring"},
    {"unknown_cache_policy", {"--cache", "none"}, "'none' is no cache policy", "auto, keep, drop, prefetch"},
    {"unknown_flag", {"--framse", "17"}, "'--framse' is unknown", "did you mean --frames?"},
    {"unknown_flag_like_none", {"--zzzzzzzz"}, "'--zzzzzzzz' is unknown", "sluice generate --help"},
    {"word_too_much", {"clip.mp4"}, "'clip.mp4' is unknown", "sluice generate --help"},
    {"flag_without_value", {"--seed"}, "--seed needs a value", "sluice generate --help"},
    {"flag_given_twice", {"--seed", "1", "--seed", "2"}, "--seed is given more than once", "once"},
    {"prompt_that_is_no_utf8", {"--prompt", "a\xff"}, "the prompt is not UTF-8: byte 1 is 0xff", "encoding"},
    {"negative_prompt_that_is_no_utf8",
     {"--negative-prompt", "\xc3("},
     "the negative prompt is not UTF-8: byte 0 is 0xc3",
     "encoding"},
};

class Usage : public ::testing::TestWithParam<Row> {
 protected:
  TemporaryFolder folder_;
  Arguments command_ = with(with(fixture_clip(), {"-o", folder_ / "clip.mp4"}), GetParam().flags);
};

TEST_P(Usage, is_refused_with_what_would_be_right) {
  const Outcome outcome = run(command_);

  EXPECT_THAT(outcome, Refuses(2, HasSubstr(GetParam().message), HasSubstr(GetParam().hint)));
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(folder_.names(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Of, Usage, ::testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Commands, are_named_when_one_is_unknown_or_missing) {
  EXPECT_THAT(run({"genrate", "--model", "x"}),
              Refuses(2, HasSubstr("'genrate' is unknown"), HasSubstr("did you mean generate?")));
  EXPECT_THAT(run(Arguments{}), Refuses(2, HasSubstr("no command given"), HasSubstr("sluice --help")));
  EXPECT_THAT(run({"generate"}),
              Refuses(2, HasSubstr("--model is required"), HasSubstr("sluice generate --help")));
  EXPECT_THAT(run({"inspect"}),
              Refuses(2, HasSubstr("path is required"), HasSubstr("sluice inspect --help")));
}

TEST(Commands, show_two_examples_each_in_their_help) {
  for (const char* command : {"generate", "encode", "plan", "inspect"}) {
    const Outcome outcome = run({command, "--help"});
    EXPECT_THAT(outcome, Succeeds());
    EXPECT_THAT(outcome.out.substr(outcome.out.find("examples:")),
                ::testing::ContainsRegex(std::string("sluice ") + command + "(.|\n)*sluice " + command));
  }
}

TEST(Commands, ask_for_what_they_cannot_do_without) {
  TemporaryFolder folder;
  Arguments no_prompt = {"generate", "--model", demo_model(), "--text-encoder", demo_text_encoder()};

  EXPECT_THAT(run(with(no_prompt, {"-o", folder / "clip.mp4"})),
              Refuses(2, HasSubstr("no prompt given"), HasSubstr("--prompt")));
  EXPECT_THAT(run(with(no_prompt, {"--prompt", "a"})),
              Refuses(2, HasSubstr("nothing would be written"), HasSubstr("-o out.mp4")));
  EXPECT_THAT(run({"generate", "--model", demo_model(), "--prompt", "a", "-o", folder / "clip.mp4"}),
              Fails(2, HasSubstr("no text encoder given"), HasSubstr("--text-encoder FOLDER")));
  EXPECT_THAT(
      run({"encode", "--prompt", "a", "--text-encoder", demo_text_encoder(), "-o", folder / "context"}),
      Refuses(2, HasSubstr("a context needs the model's connectors"), HasSubstr("--hidden-states")));
}

// The error object, of a run that said nothing else.
json error_of(const Outcome& outcome, int code) {
  EXPECT_EQ(outcome.code, code);
  EXPECT_THAT(outcome.err, IsEmpty());
  return json::parse(outcome.out).at("error");
}

TEST(Errors, are_one_json_object_when_asked) {
  const json usage = error_of(run(with(fixture_clip(), {"--json", "--framse", "9"})), 2);
  EXPECT_EQ(
      usage,
      json({{"kind", "usage"}, {"message", "'--framse' is unknown"}, {"hint", "did you mean --frames?"}}));

  const json value = error_of(run(with(fixture_clip(), {"--json", "-o", "/tmp/x.mp4", "--width", "33"})), 2);
  EXPECT_EQ(value.at("kind"), "usage");
  EXPECT_EQ(value.at("hint"), "use 32 or 64");

  const json file = error_of(run({"inspect", "--json", "/no/such/file\xff.safetensors"}), 3);
  EXPECT_EQ(file.at("kind"), "bad_input");
  EXPECT_THAT(file.at("message").get<std::string>(),
              AllOf(StartsWith("/no/such/file"), HasSubstr("no such file")));
}

}  // namespace
}  // namespace sluice::test
