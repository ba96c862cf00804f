// Runs that are stopped go on from what they kept, to the same bytes.
#include "pipeline/runs.h"
#include "base/log.h"
#include "support/faulty_syscalls.h"
#include "support/throws_error.h"

#include <sluice/checkpoint.h>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
  return names;
}

// What is logged while it lives.
class Log {
 public:
  Log() {
    set_log_sink([this](LogLevel level, const std::string& line) {
      if (level == LogLevel::warning) warnings_.push_back(line);
    });
  }
  ~Log() { set_log_sink({}); }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  std::vector<std::string> warnings_;
};

class Resume : public ::testing::Test {
 protected:
  Outputs outputs(const std::string& name = "clip") const { return everything(folder_.path(), name); }
  fs::path work() const { return folder_ / "clip.mp4.sluice-work"; }
  // Outputs of a run that nothing disturbed.
  static const Outputs& undisturbed() {
    static const TemporaryFolder folder;
    static const Outputs outputs = [] {
      const Outputs made = everything(folder.path(), "whole");
      generate(demo_request(), made);
      return made;
    }();
    return outputs;
  }

  TemporaryFolder folder_;
};

TEST_F(Resume, gives_the_bytes_of_an_undisturbed_run_wherever_it_was_stopped) {
  const std::vector<std::pair<Moment, std::string>> stops = {{{"denoise", 0}, "denoise 0/8"},
                                                             {{"denoise", 1}, "denoise 1/8"},
                                                             {{"denoise", 5}, "denoise 5/8"},
                                                             {{"denoise", 8}, "decode sound 0/1"},
                                                             {{"decode sound", 0}, "decode sound 0/1"},
                                                             {{"decode video", 1}, "decode video 1/17"},
                                                             {{"decode video", 16}, "decode video 1/17"}};
  for (const auto& [stop, first] : stops) {
    SCOPED_TRACE(stop.phase + " " + std::to_string(stop.done));
    const Outputs made = outputs(stop.phase + std::to_string(stop.done));
    ASSERT_TRUE(stop_at(stop, demo_request(), made));

    EXPECT_EQ(resume(demo_request(), made).front(), first);

    EXPECT_TRUE(same_outputs(made, undisturbed()));
  }
  EXPECT_THAT(folder_.names(), Not(Contains(HasSubstr("sluice"))));
  EXPECT_THAT(folder_.names(), Not(Contains(HasSubstr("partial"))));
}

TEST_F(Resume, goes_on_as_often_as_it_is_stopped) {
  for (const Moment& stop : {Moment{"denoise", 2}, Moment{"denoise", 4}, Moment{"decode video", 3}}) {
    Outputs again = outputs();
    again.resume = stop.done != 2;
    ASSERT_TRUE(stop_at(stop, demo_request(), again));
  }

  EXPECT_EQ(resume(demo_request(), outputs()).front(), "decode video 1/17");

  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
}

TEST_F(Resume, works_with_guidance_and_its_second_context) {
  Request guided = demo_request();
  guided.variant = Variant::dev;
  guided.steps = 3;
  guided.negative_prompt = "a blue circle";
  guided.stg_blocks = {1};
  generate(guided, outputs("whole"));
  ASSERT_TRUE(stop_at({"denoise", 2}, guided, outputs()));

  EXPECT_EQ(resume(guided, outputs()).front(), "denoise 2/3");

  EXPECT_TRUE(same_outputs(outputs(), outputs("whole")));
}

TEST_F(Resume, keeps_the_last_two_steps_and_all_of_them_for_a_trace) {
  Outputs without = outputs();
  without.trace.clear();
  ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), without));
  EXPECT_THAT(names_in(work()), UnorderedElementsAre("sluice-work.json", "contexts.safetensors",
                                                     "latents_after_0004_steps.safetensors",
                                                     "latents_after_0005_steps.safetensors"));

  EXPECT_THAT([&] { resume(demo_request(), outputs()); },
              ThrowsError(ErrorKind::usage, HasSubstr("a trace needs the latents of all 5 steps"),
                          HasSubstr("leave out --trace")));

  ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), outputs()));
  EXPECT_EQ(names_in(work()).size(), 7u);
}

TEST_F(Resume, keeps_no_more_than_the_clean_latents_once_they_are_there) {
  ASSERT_TRUE(stop_at({"decode sound", 0}, demo_request(), outputs()));

  EXPECT_THAT(names_in(work()), UnorderedElementsAre("sluice-work.json", "latents.safetensors",
                                                     "latents_after_0008_steps.safetensors"));
}

TEST_F(Resume, tells_in_the_report_where_it_went_on) {
  ASSERT_TRUE(stop_at({"denoise", 3}, demo_request(), outputs()));
  Outputs again = outputs();
  again.resume = true;

  const json report = json::parse(generate(demo_request(), again));

  EXPECT_EQ(report.at("resumed"), "after 3 of 8 steps");
  EXPECT_EQ(report.at("phases").size(), 3u);  // no text phase
}

TEST_F(Resume, is_refused_where_the_request_differs_naming_what) {
  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));
  auto refused = [&](auto change, const std::string& difference) {
    Request other = demo_request();
    change(other);
    EXPECT_THAT([&] { resume(other, outputs()); },
                ThrowsError(ErrorKind::usage, AllOf(HasSubstr("clip.mp4.sluice-work"), HasSubstr(difference)),
                            HasSubstr("without --resume")));
  };

  refused([](Request& r) { r.seed = 43; }, "seed 42 there, 43 here");
  refused([](Request& r) { r.prompt = "a green circle"; }, "here");
  refused([](Request& r) { r.prompt = "a green circle"; }, "prompt \"a red circle moves right");
  refused([](Request& r) { r.width = 96; }, "width 64 there, 96 here");
  refused([](Request& r) { r.frames = 9; }, "frames 17 there, 9 here");
  refused([](Request& r) { r.sigmas = {1.0, 0.5}; }, "sigmas [");
  refused([](Request& r) { r.compute_dtype = ComputeDtype::bf16; }, "compute_dtype \"f32\" there");
  refused([](Request& r) { r.threads = 2; }, "threads 1 there, 2 here");
  EXPECT_EQ(resume(demo_request(), outputs()).front(), "denoise 2/8");
}

TEST_F(Resume, notices_a_model_with_the_same_header_and_other_weights) {
  const fs::path model = folder_ / "model.safetensors";
  fs::copy(demo_model(), model);
  Request request = demo_request();
  request.model = model;
  ASSERT_TRUE(stop_at({"denoise", 2}, request, outputs()));
  std::string content = file_content(model);
  const std::size_t header = Checkpoint::open(model).shards()[0].header_size;
  std::reverse(content.begin() + static_cast<std::ptrdiff_t>(header), content.end());
  write_file(model, content);

  EXPECT_THAT([&] { resume(request, outputs()); },
              ThrowsError(ErrorKind::usage, HasSubstr("another model file model.safetensors")));
}

TEST_F(Resume, allows_what_does_not_change_the_result) {
  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));
  Request other = demo_request();
  other.read_backend = ReadBackend::pread;
  other.cache = CachePolicy::drop;
  Outputs more = outputs();
  more.report = folder_ / "report";

  EXPECT_EQ(resume(other, more).front(), "denoise 2/8");

  EXPECT_TRUE(same_outputs(more, undisturbed()));
}

TEST_F(Resume, needs_something_to_resume) {
  EXPECT_THAT([&] { resume(demo_request(), outputs()); },
              ThrowsError(ErrorKind::usage, HasSubstr("no work is kept in " + work().string()),
                          HasSubstr("without --resume")));
  Outputs elsewhere = outputs();
  elsewhere.work_dir = folder_ / "work";
  EXPECT_THAT([&] { resume(demo_request(), elsewhere); },
              ThrowsError(ErrorKind::usage, HasSubstr("no work is kept in " + elsewhere.work_dir.string())));
  EXPECT_THAT(folder_.names(), IsEmpty());
}

TEST_F(Resume, finishes_under_another_name_where_the_folder_is_named_or_lies_beside_it) {
  fs::create_directory(folder_ / "other");
  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));
  Outputs beside = outputs("beside");
  Outputs elsewhere = everything(folder_ / "other", "clip");

  EXPECT_THAT([&] { resume(demo_request(), elsewhere); },
              ThrowsError(ErrorKind::usage, HasSubstr("no work is kept"), HasSubstr("--work-dir")));
  elsewhere.work_dir = work();
  ASSERT_TRUE([&] {
    Outputs again = elsewhere;
    again.resume = true;
    return stop_at({"denoise", 4}, demo_request(), again);
  }());
  EXPECT_EQ(resume(demo_request(), beside).front(), "denoise 4/8");

  EXPECT_TRUE(same_outputs(beside, undisturbed()));
  EXPECT_FALSE(fs::exists(work()));
}

// Changes one byte of a file, or cuts it there.
void damage(const fs::path& file, std::size_t at, bool cut) {
  std::string content = file_content(file);
  if (cut) {
    content.resize(at);
  } else {
    content[at] = static_cast<char>(content[at] ^ 1);
  }
  write_file(file, content);
}

TEST_F(Resume, takes_the_step_before_a_damaged_one) {
  const auto seed = static_cast<unsigned>(::testing::UnitTest::GetInstance()->random_seed());
  std::srand(seed);
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Outputs made = outputs("clip" + std::to_string(attempt));
    Outputs stopped = made;
    stopped.trace.clear();
    ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), stopped));
    const fs::path last = made.video.string() + ".sluice-work/latents_after_0005_steps.safetensors";
    const std::size_t at = static_cast<std::size_t>(std::rand()) % fs::file_size(last);
    SCOPED_TRACE("seed " + std::to_string(seed) + ", byte " + std::to_string(at));
    damage(last, at, attempt % 3 == 0);
    Log log;

    const std::vector<std::string> moments = resume(demo_request(), stopped);

    // A byte of the header's padding says nothing.
    if (moments.front() != "denoise 5/8") {
      EXPECT_EQ(moments.front(), "denoise 4/8");
      EXPECT_THAT(log.warnings(), Contains(HasSubstr("latents_after_0005_steps.safetensors")));
    }
    Outputs whole = undisturbed();
    whole.trace.clear();
    EXPECT_TRUE(same_outputs(stopped, whole));
  }
}

TEST_F(Resume, computes_again_what_is_damaged_or_missing) {
  ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), outputs()));
  damage(work() / "contexts.safetensors", fs::file_size(work() / "contexts.safetensors") / 2, false);
  damage(work() / "latents_after_0003_steps.safetensors", 100, true);

  const std::vector<std::string> moments = resume(demo_request(), outputs());

  EXPECT_THAT(moments.front(), StartsWith("text 1/"));
  EXPECT_THAT(moments, Contains("denoise 2/8"));
  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
}

TEST_F(Resume, refuses_a_damaged_marker_and_says_how_to_start_over) {
  ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), outputs()));
  damage(work() / "sluice-work.json", fs::file_size(work() / "sluice-work.json") / 2, false);

  EXPECT_THAT([&] { resume(demo_request(), outputs()); },
              ThrowsError(ErrorKind::corrupt_file, HasSubstr("sluice-work.json is damaged"),
                          HasSubstr("without --resume")));

  generate(demo_request(), outputs());
  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
}

TEST_F(Resume, replaces_outputs_that_the_stopped_run_made_and_no_others) {
  ASSERT_TRUE(stop_at({"decode video", 3}, demo_request(), outputs()));
  ASSERT_TRUE(fs::exists(outputs().latents));  // made before the sound and the frames
  ASSERT_TRUE(fs::exists(outputs().trace));
  write_file(outputs().video, "somebody else's");

  EXPECT_THAT([&] { resume(demo_request(), outputs()); },
              ThrowsError(ErrorKind::usage, HasSubstr("clip.mp4: exists already"), HasSubstr("--overwrite")));
  EXPECT_EQ(file_content(outputs().video), "somebody else's");
  fs::remove(outputs().video);
  resume(demo_request(), outputs());

  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
}

TEST_F(Resume, starts_over_without_the_flag_and_says_that_it_could_go_on) {
  ASSERT_TRUE(stop_at({"denoise", 5}, demo_request(), outputs()));
  Log log;
  ASSERT_TRUE(stop_at({"text", 1}, demo_request(), outputs()));
  EXPECT_THAT(log.warnings(), Contains(HasSubstr("starting over, --resume would go on")));
  ASSERT_TRUE(fs::exists(work() / "latents_after_0005_steps.safetensors"));  // nothing new yet

  generate(demo_request(), outputs());

  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
  EXPECT_FALSE(fs::exists(work()));
}

TEST_F(Resume, work_of_another_request_is_replaced_with_a_warning) {
  Request other = demo_request();
  other.seed = 7;
  ASSERT_TRUE(stop_at({"denoise", 5}, other, outputs()));
  Log log;

  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));

  EXPECT_THAT(log.warnings(),
              Contains(AllOf(HasSubstr("is going to be replaced"), HasSubstr("seed 7 there"))));
  EXPECT_EQ(resume(demo_request(), outputs()).front(), "denoise 2/8");
  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
}

TEST_F(Resume, never_touches_a_folder_that_was_not_made_for_it) {
  Outputs other = outputs();
  other.work_dir = folder_ / "mine";
  fs::create_directory(other.work_dir);
  write_file(other.work_dir / "latents.safetensors", "mine");

  EXPECT_THAT([&] { generate(demo_request(), other); },
              ThrowsError(ErrorKind::usage, HasSubstr("mine: is not empty, and no folder that sluice keeps"),
                          HasSubstr("--work-dir")));

  EXPECT_EQ(file_content(other.work_dir / "latents.safetensors"), "mine");
  fs::remove(other.work_dir / "latents.safetensors");
  generate(demo_request(), other);
  EXPECT_TRUE(fs::is_empty(other.work_dir));  // it was there before: it stays
}

TEST_F(Resume, leaves_what_somebody_put_into_its_folder) {
  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));
  write_file(work() / "notes.txt", "mine");

  resume(demo_request(), outputs());

  EXPECT_THAT(names_in(work()), ElementsAre("notes.txt"));
}

TEST_F(Resume, waits_for_no_run_that_works_there) {
  ASSERT_TRUE(stop_at({"denoise", 2}, demo_request(), outputs()));
  const int other = ::open(work().c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  Log log;

  EXPECT_THAT([&] { resume(demo_request(), outputs()); },
              ThrowsError(ErrorKind::usage, HasSubstr("another run works with it")));
  generate(demo_request(), outputs());

  EXPECT_THAT(log.warnings(), Contains(HasSubstr("this one keeps nothing to resume from")));
  EXPECT_TRUE(fs::exists(work() / "latents_after_0002_steps.safetensors"));
  ::close(other);
}

TEST_F(Resume, says_how_when_a_run_ends_early) {
  CancelToken cancel;
  Watcher watcher([&](std::string_view phase, std::int64_t done, std::int64_t) {
    if (phase == "denoise" && done == 3) cancel.cancel();
  });
  Log log;

  EXPECT_THAT([&] { generate(demo_request(), outputs(), &watcher, &cancel); },
              ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted"),
                          HasSubstr("run the same command again with --resume")));

  EXPECT_THAT(log.warnings(), Contains(AllOf(HasSubstr("the latents after 3 of 8 steps are kept"),
                                             HasSubstr("--work-dir " + work().string()))));
}

TEST_F(Resume, latents_of_a_step_can_be_looked_at) {
  ASSERT_TRUE(stop_at({"denoise", 8}, demo_request(), outputs()));
  Request look = demo_request();
  look.decode_latents = work() / "latents_after_0008_steps.safetensors";

  generate(look, {.video = folder_ / "look.mp4", .metadata = false});
  look.decode_latents = undisturbed().latents;
  generate(look, {.video = folder_ / "whole.mp4", .metadata = false});

  EXPECT_EQ(file_content(folder_ / "look.mp4"), file_content(folder_ / "whole.mp4"));
}

TEST_F(Resume, of_given_latents_is_a_contradiction) {
  Request given = demo_request();
  given.decode_latents = undisturbed().latents;

  EXPECT_THAT([&] { resume(given, {.video = folder_ / "clip.mp4"}); },
              ThrowsError(ErrorKind::usage, HasSubstr("--resume and --decode-latents contradict")));
}

TEST_F(Resume, keeping_may_fail_and_the_run_goes_on) {
  Log log;
  {
    FaultySyscalls faults;
    faults.fail_nth_write(2, ENOSPC);  // of the first thing that is kept
    generate(demo_request(), outputs());
  }

  EXPECT_THAT(log.warnings(), Contains(AllOf(HasSubstr("the run goes on"), HasSubstr("no space left"))));
  EXPECT_TRUE(same_outputs(outputs(), undisturbed()));
  EXPECT_FALSE(fs::exists(work()));
}

}  // namespace
}  // namespace sluice::test
