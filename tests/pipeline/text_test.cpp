// What a prompt becomes, and what it leaves in memory.
#include "pipeline/world.h"
#include "support/fixture.h"
#include "support/program.h"
#include "support/temporary_folder.h"
#include "support/wide_text_encoder.h"
#include "weights/tensor_file.h"

#include <sluice/units.h>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace sluice::test {
namespace {

constexpr std::int64_t kTokens = 1024;

// The states of a prompt [1, tokens, channels · states] behind `padding` rows that no mask lets through.
weights::NamedTensors padded_states(const fs::path& states, std::int64_t to, const std::string& prefix) {
  at::Tensor rows = read_tensors(states).at("hidden_states").flatten(2);
  const std::int64_t padding = to - rows.size(1);
  at::Tensor garbage = at::full({1, padding, rows.size(2)}, 100.0f, at::TensorOptions().dtype(at::kFloat));
  at::Tensor mask = at::cat({at::zeros({1, padding}, at::kLong), at::ones({1, rows.size(1)}, at::kLong)}, 1);
  return {{prefix + "prompt_embeds", at::cat({garbage, rows}, 1)}, {prefix + "prompt_attention_mask", mask}};
}

void encode_states(const std::string& prompt, const fs::path& file) {
  encode({.text_encoder = demo_text_encoder(),
          .prompt = prompt,
          .output = file,
          .hidden_states = true,
          .compute_dtype = ComputeDtype::f32,
          .threads = 1});
}

TEST(Prompt, means_the_same_alone_and_behind_the_references_padding) {
  TemporaryFolder folder;
  Request request = demo_request();
  request.negative_prompt = "a blue square";
  request.guidance = {.cfg = 2.0};
  encode_states(request.prompt, folder / "states");
  encode_states(request.negative_prompt, folder / "negative states");
  auto tensors = padded_states(folder / "states", kTokens, "");
  for (auto& negative : padded_states(folder / "negative states", kTokens, "negative_"))
    tensors.push_back(negative);
  weights::write_tensors(folder / "inject", tensors);
  Request padded = request;
  padded.inject = folder / "inject";
  padded.text_encoder = "";

  generate(request, {.trace = folder / "alone"});
  generate(padded, {.trace = folder / "padded"});

  const TensorMap alone = read_tensors(folder / "alone"), injected = read_tensors(folder / "padded");
  for (const char* name : {"context.video", "context.audio"})
    EXPECT_TRUE(all_close(injected.at(name), alone.at(name), {.atol = 1e-5, .rtol = 1e-5})) << name;
  for (const char* name : {"step_0.video", "step_0.audio"})  // the negative prompt shows here
    EXPECT_TRUE(all_close(injected.at(name), alone.at(name), {.atol = 1e-4, .rtol = 1e-4})) << name;
}

TEST(Prompt, means_the_same_behind_any_padding) {
  TemporaryFolder folder;
  encode_states(demo_request().prompt, folder / "states");
  TensorMap first;

  for (std::int64_t rows : {128, 256}) {
    auto tensors = padded_states(folder / "states", rows, "");
    const fs::path inject = folder / ("inject " + std::to_string(rows));
    weights::write_tensors(inject, tensors);
    tensors[0].second.slice(1, 0, 1).fill_(-3);  // what lies under the mask is nobody's business
    const fs::path changed = folder / ("changed " + std::to_string(rows));
    weights::write_tensors(changed, tensors);
    for (const fs::path& file : {inject, changed}) {
      Request request = demo_request();
      request.inject = file;
      generate(request, {.trace = file.string() + " trace"});
    }
    EXPECT_EQ(file_content(inject.string() + " trace"), file_content(changed.string() + " trace")) << rows;
    // The context has as many rows as the padded prompt: registers behind the words.  The words come first.
    const at::Tensor context = read_tensors(inject.string() + " trace").at("context.video");
    EXPECT_EQ(context.size(1), rows);
  }
}

Bytes anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return KiB(std::stoull(line.substr(8)));
  }
  return 0;
}

// Of this process at the first step behind the text phase, or at its peak within that phase.
struct MemoryWatch final : Progress {
  void at(std::string_view phase, std::int64_t done, std::int64_t, std::string_view) override {
    if (phase == "text") within = std::max(within, anonymous_memory());
    if (phase == "denoise" && done == 0) behind = anonymous_memory();
  }
  Bytes within = 0, behind = 0;
};

TEST(TextPhase, leaves_only_the_context_in_memory) {
  TemporaryFolder folder;
  write_wide_text_encoder(demo_text_encoder(), folder / "wide");
  Request request = demo_request();
  for (int i = 0; i < 600; ++i) request.prompt += " red circle";
  c10::AutoGradMode on(true);
  MemoryWatch plain, wide;

  generate(request, {.latents = folder / "plain"}, &plain);
  request.text_encoder = folder / "wide";
  generate(request, {.latents = folder / "wide latents"}, &wide);

  if (!kSanitized) {
    EXPECT_LT(wide.behind, plain.behind + MiB(16));
  }
}

}  // namespace
}  // namespace sluice::test
