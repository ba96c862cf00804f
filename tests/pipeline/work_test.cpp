// What a plan counts, against the weights that are there.
#include "pipeline/work.h"

#include "pipeline/model_set.h"
#include "pipeline/predict.h"
#include "pipeline/world.h"

#include <gmock/gmock.h>

#include <numeric>

namespace sluice::pipeline {
namespace {

double elements(const weights::Parameter& parameter) {
  return std::accumulate(parameter.shape.begin(), parameter.shape.end(), 1.0, std::multiplies<>());
}

// Of matrices that every token goes through; gates are too narrow to count.
double matrix_elements(const weights::ParameterGroup& group) {
  double sum = 0;
  for (const weights::Parameter& parameter : group.parameters) {
    const bool matrix = parameter.name.ends_with(".weight") && parameter.shape.size() == 2;
    if (matrix && parameter.name.find("to_gate_logits") == std::string::npos) sum += elements(parameter);
  }
  return sum;
}

double linear_elements(const Work& work) {
  double sum = 0;
  for (const auto& [rows, count] : work.linear) sum += count;
  return sum;
}

TEST(Work, CountsEveryMatrixOfABlockOnce) {
  const ModelSet models = open_models(test::demo_model(), {.sound = false});
  const auto groups = models.transformer->groups();
  const Work work = block_work(models.transformer->config(), {.video = 16, .audio = 26, .text = 1024});
  EXPECT_EQ(linear_elements(work), matrix_elements(*groups.at(1)));
}

TEST(Work, CountsEveryMatrixOfATextEncodersLayerOnce) {
  const TextEncoder encoder = open_text_encoder(test::demo_text_encoder());
  double sum = 0;
  for (const auto* group : encoder.model->pass()) sum += matrix_elements(*group);
  const auto layers = static_cast<double>(encoder.model->config.layers.size());
  EXPECT_EQ(layers * linear_elements(gemma_layer_work(encoder.model->config, 20)), sum);
}

TEST(Work, AddsAndScales) {
  Work one{.linear = {{8, 2.0}}, .attention = 1, .conv3d = 3};
  one += 2 * Work{.linear = {{8, 1.0}, {4, 5.0}}, .attention = 2};
  EXPECT_EQ(one.linear, (std::map<std::int64_t, double>{{4, 10.0}, {8, 4.0}}));
  EXPECT_EQ(one.attention, 5);
  EXPECT_EQ(one.conv3d, 3);
}

TEST(Prediction, GivesEveryPhaseATimeThatGrowsWithTheRequest) {
  const ModelSet models = open_models(test::demo_model(), {});
  const TextEncoder encoder = open_text_encoder(test::demo_text_encoder());
  MachineSpeed speed(at::kFloat);
  auto seconds = [&](std::int64_t side) {
    Request request = test::demo_request();
    request.width = request.height = side;
    const GivenMedia media;
    const Settings settings = settle(request, models, {media});
    const RunInputs inputs{.models = models,
                           .encoder = &encoder,
                           .request = request,
                           .settings = settings,
                           .settle = {media},
                           .prompt_tokens = {20}};
    RunPlan plan = plan_run(inputs, {.total = GiB(64)}, 0);
    predict(plan, inputs, speed);
    for (const PhasePlan& phase : plan.phases) EXPECT_GT(phase.seconds.value_or(0), 0) << phase.name;
    return plan.find("decode video")->seconds.value() + plan.find("denoise")->seconds.value();
  };
  const double small = seconds(64);
  EXPECT_GT(seconds(256), 4 * small);
}

}  // namespace
}  // namespace sluice::pipeline
