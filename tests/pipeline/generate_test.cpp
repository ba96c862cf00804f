// generate() as a function of a process that lives on: nothing of one call may show in the next.
#include "pipeline/runs.h"
#include "support/faulty_syscalls.h"
#include "support/program.h"
#include "support/throws_error.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>

namespace sluice::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A number of /proc/self/status.
std::int64_t status(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1));
  }
  return -1;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), {});
}

TEST(Generate, gives_equal_bytes_for_equal_requests_with_others_between_them) {
  TemporaryFolder folder;
  Request other = demo_request();
  other.width = 96;
  other.frames = 9;
  other.guidance = {.cfg = 2.0, .stg = 1.0, .modality = 2.0, .rescale = 0.5};
  other.stg_blocks = {2};
  other.read_backend = ReadBackend::pread;

  generate(demo_request(), everything(folder.path(), "first"));
  generate(other, everything(folder.path(), "other"));
  generate(demo_request(), everything(folder.path(), "again"));

  EXPECT_TRUE(same_outputs(everything(folder.path(), "first"), everything(folder.path(), "again")));
  EXPECT_FALSE(same_outputs(everything(folder.path(), "first"), everything(folder.path(), "other")));
}

TEST(Generate, costs_in_the_eighth_call_what_it_did_in_the_second) {
  TemporaryFolder folder;
  std::int64_t memory = 0, threads = 0;
  std::ptrdiff_t descriptors = 0;

  for (int call = 1; call <= 8; ++call) {
    Request request = demo_request();
    request.seed = static_cast<std::uint64_t>(call);
    request.frames = call % 2 == 0 ? 17 : 9;
    generate(request, {.video = folder / "clip.mp4", .sound = call % 3 != 0, .overwrite = true});
    if (call != 2) continue;
    memory = status("RssAnon");
    threads = status("Threads");
    descriptors = open_descriptors();
  }

  if (!kSanitized) {
    EXPECT_LT(status("RssAnon"), memory + 64 * 1024);
  }
  EXPECT_EQ(status("Threads"), threads);
  EXPECT_EQ(open_descriptors(), descriptors);
}

TEST(Generate, records_no_graph_for_a_caller_with_grad_mode_on) {
  TemporaryFolder folder;
  c10::AutoGradMode on(true);

  generate(demo_request(), everything(folder.path(), "on"));

  EXPECT_TRUE(c10::GradMode::is_enabled());
  c10::AutoGradMode off(false);
  generate(demo_request(), everything(folder.path(), "off"));
  EXPECT_TRUE(same_outputs(everything(folder.path(), "on"), everything(folder.path(), "off")));
}

TEST(Generate, tells_phases_and_their_ends_in_order) {
  TemporaryFolder folder;
  std::vector<std::string> ended;
  Watcher watcher([&](std::string_view phase, std::int64_t done, std::int64_t total) {
    EXPECT_LE(done, total);
    if (done == total) ended.emplace_back(phase);
  });

  generate(demo_request(), {.video = folder / "clip.mp4"}, &watcher);

  EXPECT_THAT(ended, ElementsAre("text", "denoise", "decode sound", "decode video"));
}

TEST(Generate, stops_wherever_the_token_says_so_and_leaves_but_what_it_resumes_from) {
  for (const std::string when : {"text", "denoise", "decode sound", "decode video"}) {
    TemporaryFolder folder;
    CancelToken cancel;
    Watcher watcher([&](std::string_view phase, std::int64_t, std::int64_t) {
      if (phase == when) cancel.cancel();
    });

    EXPECT_THAT(
        [&] {
          generate(demo_request(), {.wav = folder / "clip.wav", .frames_dir = folder / "frames"}, &watcher,
                   &cancel);
        },
        ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")))
        << when;
    if (when == "text") {
      EXPECT_THAT(folder.names(), IsEmpty());
    } else {
      EXPECT_THAT(folder.names(), ElementsAre("clip.wav.sluice-work")) << when;
    }
  }
}

// Requests whose weights are read in pieces, by one thread.
Request reading_request() {
  Request request = demo_request();
  request.read_backend = ReadBackend::pread;
  return request;
}

// Read calls of a run; the last of them reads weights of the decoder.
int read_calls_of_a_run() {
  TemporaryFolder folder;
  FaultySyscalls counting;
  generate(reading_request(), {.frames_dir = folder / "frames"});
  return counting.read_calls();
}

TEST(Generate, names_file_and_tensor_of_weights_that_cannot_be_read) {
  TemporaryFolder folder;
  const int calls = read_calls_of_a_run();
  FaultySyscalls faults;
  faults.fail_nth_read(calls, EIO);

  EXPECT_THAT([&] { generate(reading_request(), {.frames_dir = folder / "frames"}); },
              ThrowsError(ErrorKind::io, AllOf(HasSubstr("ltx-2.3-demo.safetensors"),
                                               HasSubstr("tensor 'vae."), HasSubstr("input/output error"))));
  EXPECT_THAT(folder.names(), ElementsAre("frames.sluice-work"));
}

TEST(Generate, stops_while_it_reads_weights) {
  TemporaryFolder folder;
  const int calls = read_calls_of_a_run();
  CancelToken cancel;
  FaultySyscalls faults;
  faults.before_nth_read(calls, [&] { cancel.cancel(); });

  EXPECT_THAT([&] { generate(reading_request(), {.frames_dir = folder / "frames"}, nullptr, &cancel); },
              ThrowsError(ErrorKind::interrupted, HasSubstr("interrupted")));
  EXPECT_THAT(folder.names(), ElementsAre("frames.sluice-work"));
}

TEST(Report, tells_how_weights_were_read_and_the_same_bytes_for_each_way) {
  TemporaryFolder folder;
  auto report_of = [&](ReadBackend backend, CachePolicy cache) {
    Request request = demo_request();
    request.read_backend = backend;
    request.cache = cache;
    return json::parse(generate(request, {.frames_dir = folder / to_string(backend)}));
  };
  auto choice = [](const json& report, const std::string& what) {
    for (const json& choice : report.at("choices")) {
      if (choice.at("what") == what) return choice;
    }
    return json(nullptr);
  };
  const json mapped = report_of(ReadBackend::automatic, CachePolicy::automatic);
  const json read = report_of(ReadBackend::pread, CachePolicy::drop);

  EXPECT_EQ(choice(mapped, "read-backend").at("value"), "mmap");
  EXPECT_EQ(choice(mapped, "cache"), nullptr);
  EXPECT_THAT(choice(read, "read-backend").at("value").get<std::string>(), HasSubstr("pread"));
  EXPECT_EQ(choice(read, "cache").at("value"), "drop");
  for (std::size_t phase = 0; phase < mapped.at("phases").size(); ++phase)
    EXPECT_EQ(mapped.at("phases")[phase].at("bytes_read"), read.at("phases")[phase].at("bytes_read"));
}

}  // namespace
}  // namespace sluice::test
