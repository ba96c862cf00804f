// That parity_test fails where it must.
#include "parity/suite.h"

#include "bytes/format/writer.h"
#include "support/temporary_folder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <limits>
#include <span>
#include <string>
#include <vector>

namespace sluice::parity {
namespace {

using nlohmann::json;
using test::TemporaryFolder;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A case "doubling/one": in.x = {1, 2}, out.y = {2, 4}.
class Suite : public testing::Test {
 protected:
  Suite() {
    registry_.add("doubling", "", [](const Case& parity_case) {
      Results results;
      results.add("y", parity_case.input("x") * 2);
      return results;
    });
    std::filesystem::create_directories(case_folder());
    write_io({1, 2}, {2, 4});
    write_manifest(manifest_);
  }

  std::filesystem::path case_folder() const { return folder_ / "doubling" / "one"; }

  void write_io(const std::vector<float>& x, const std::vector<float>& y) {
    const auto extent = [](const auto& values) { return static_cast<std::int64_t>(values.size()); };
    bytes::SafetensorsWriter writer(case_folder() / "io.safetensors",
                                    {{"in.x", Dtype::F32, {extent(x)}}, {"out.y", Dtype::F32, {extent(y)}}});
    writer.append(std::as_bytes(std::span(x)));
    writer.append(std::as_bytes(std::span(y)));
    writer.finish();
  }

  void write_manifest(const json& manifest) {
    test::write_file(case_folder() / "manifest.json", manifest.dump());
  }

  Outcome run() { return run_case(case_folder() / "manifest.json", registry_); }
  Outcome run_with(const char* pointer, const json& value) {
    json changed = manifest_;
    changed[json::json_pointer(pointer)] = value;
    write_manifest(changed);
    return run();
  }

  TemporaryFolder folder_;
  Registry registry_;
  json manifest_ = json::parse(R"({
    "format": 1, "name": "doubling/one", "component": "doubling", "case": "one", "config": {}, "params": {},
    "weights": null, "io": "io.safetensors", "files": [],
    "inputs": {"x": {"tensor": "in.x", "dtype": "float32", "shape": [2]}},
    "outputs": {"y": {"tensor": "out.y", "dtype": "float32", "shape": [2], "atol": 1e-5, "rtol": 1e-4}}})");
};

TEST_F(Suite, passes_a_case_within_its_tolerance) {
  write_io({1, 2}, {2.0001f, 4});

  Outcome outcome = run();

  EXPECT_EQ(outcome.verdict, Verdict::passed);
  ASSERT_THAT(outcome.rows, SizeIs(1));
  EXPECT_NEAR(outcome.rows[0].max_abs, 1e-4, 1e-6);
  EXPECT_NEAR(outcome.rows[0].max_rel, 2.5e-5, 1e-7);
}

TEST_F(Suite, fails_a_case_with_one_value_outside_its_tolerance) {
  write_io({1, 2}, {2, 4.01f});

  Outcome outcome = run();

  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_THAT(outcome.rows[0].remark, HasSubstr("1 of 2 elements"));
}

TEST_F(Suite, fails_nan_even_where_the_reference_has_it) {
  write_io({1, kNan}, {2, kNan});

  EXPECT_EQ(run().verdict, Verdict::failed);
}

TEST_F(Suite, fails_an_output_of_another_shape) {
  write_io({1, 2, 3}, {2, 4});

  Outcome outcome = run_with("/inputs/x/shape", {3});

  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_THAT(outcome.rows[0].remark, HasSubstr("shape [3], not [2]"));
}

TEST_F(Suite, fails_an_output_that_was_not_computed) {
  Outcome outcome = run_with("/outputs/z", manifest_["outputs"]["y"]);

  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_THAT(format_outcome(outcome), AllOf(HasSubstr("z"), HasSubstr("was not computed")));
}

TEST_F(Suite, fails_a_case_that_compares_nothing) {
  EXPECT_EQ(run_with("/outputs", json::object()).verdict, Verdict::failed);
}

TEST_F(Suite, fails_a_case_whose_runner_throws_with_its_words) {
  registry_.add("doubling", "one", [](const Case&) -> Results { throw std::runtime_error("no such layer"); });

  Outcome outcome = run();

  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_EQ(outcome.reason, "no such layer");
}

TEST_F(Suite, skips_a_component_that_no_runner_covers) {
  Outcome outcome = run_case(case_folder() / "manifest.json", Registry());

  EXPECT_EQ(outcome.verdict, Verdict::skipped);
  EXPECT_THAT(format_outcome(outcome), AllOf(HasSubstr("doubling/one"), HasSubstr("skipped: not covered")));
}

TEST_F(Suite, fails_a_malformed_manifest_even_of_a_component_that_is_not_covered) {
  test::write_file(case_folder() / "manifest.json", R"({"format": 1, "name": )");

  EXPECT_EQ(run_case(case_folder() / "manifest.json", Registry()).verdict, Verdict::failed);
}

struct Change {
  const char* pointer;
  json value;
  const char* named;
};

class MalformedManifest : public Suite, public testing::WithParamInterface<Change> {};

TEST_P(MalformedManifest, is_a_failure_that_names_the_place) {
  Outcome outcome = run_with(GetParam().pointer, GetParam().value);

  EXPECT_EQ(outcome.verdict, Verdict::failed);
  EXPECT_THAT(outcome.reason, HasSubstr(GetParam().named));
}

INSTANTIATE_TEST_SUITE_P(Changes, MalformedManifest,
                         testing::Values(Change{"/format", 2, "format is 2"},
                                         Change{"/component", 7, "'component' is number"},
                                         Change{"/case", "two", "lies in 'doubling/one'"},
                                         Change{"/config", nullptr, "'config'"},
                                         Change{"/io", "other.safetensors", "'other.safetensors'"},
                                         Change{"/weights", "weights.safetensors", "'weights.safetensors'"},
                                         Change{"/files", {"cases.json"}, "'cases.json'"},
                                         Change{"/inputs/x/tensor", "in.z", "'in.z'"},
                                         Change{"/inputs/x/dtype", "float16", "manifest says float16"},
                                         Change{"/outputs/y/shape", {3}, "manifest says float32 [3]"},
                                         Change{"/outputs/y/shape", {-2}, "extent -2"},
                                         Change{"/outputs/y/atol", "small", "'atol' is string"},
                                         Change{"/outputs/y/rtol", -1.0, "rtol -1"}));

TEST_F(Suite, finds_manifests_two_folders_down_and_no_deeper) {
  std::filesystem::create_directories(folder_ / "a/b/c/d");
  test::write_file(folder_ / "a/b/c/manifest.json", "{}");
  test::write_file(folder_ / "a/manifest.json", "{}");

  EXPECT_THAT(find_manifests(folder_.path()), ElementsAre(case_folder() / "manifest.json"));
}

TEST(Registry, prefers_the_longest_prefix) {
  Registry registry;
  const auto giving = [](const char* output) {
    return [output](const Case&) {
      Results results;
      results.claim(output, true);
      return results;
    };
  };
  registry.add("vae", "decode_", giving("any"));
  registry.add("vae", "decode_f", giving("whole"));

  EXPECT_EQ(registry.find({.component = "vae", .name = "encode_f1"}), nullptr);
  EXPECT_NE(registry.find({.component = "vae", .name = "decode_tiled"}),
            registry.find({.component = "vae", .name = "decode_f1"}));
}

TEST(Score, is_good_only_if_something_passed_and_nothing_failed) {
  Score score;
  EXPECT_FALSE(score.good());

  count(score, {.verdict = Verdict::skipped});
  EXPECT_FALSE(score.good());

  count(score, {.verdict = Verdict::passed});
  EXPECT_TRUE(score.good());

  count(score, {.verdict = Verdict::failed});
  EXPECT_FALSE(score.good());
  EXPECT_EQ(format_score(score), "1 passed, 1 failed, 1 skipped");
}

}  // namespace
}  // namespace sluice::parity
